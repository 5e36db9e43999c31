//go:build !linux

package main

import "syscall"

// childAttributes puts a child in a process group of its own, so that Ctrl-C
// reaches the supervisor alone and the supervisor decides in which order things
// end. Only Linux can also promise that it dies with the supervisor.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
