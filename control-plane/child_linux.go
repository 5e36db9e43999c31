package main

import "syscall"

// childAttributes puts a child in a process group of its own, so that Ctrl-C
// reaches the supervisor alone and the supervisor decides in which order things
// end, and has the kernel kill it should the supervisor itself be killed.
//
// The kernel means the death of the thread that started the child. That thread
// is the main one (see init in run.go), which lives as long as the process.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
