package main

import "syscall"

// childAttributes puts a child in its own process group, so that Ctrl-C reaches the supervisor alone and the supervisor
// decides the order of the shutdown. It also has the kernel kill the child should the supervisor itself be killed.
//
// The kernel acts when the thread that started the child dies. That thread is the main one (see init in run.go), which
// lives as long as the process.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
