//go:build !linux

package main

import "syscall"

// childAttributes puts a child in its own process group, so that Ctrl-C reaches the supervisor alone and the supervisor
// decides the order of the shutdown. Only on Linux does the child also die with the supervisor.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
