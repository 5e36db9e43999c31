package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// reservedPort keeps a loopback port for the API server over all its restarts.
//
// "Find a free port, close it, pass it to the child" loses the port to any process that is quicker, and loses it again
// whenever the API server is down. Here the supervisor binds the port and never listens on it: no other process can
// take it, neither for a listener nor for an outgoing connection, while the API server may bind it too (both set
// SO_REUSEPORT and have the same owner). Connections go to listening sockets only, so they are refused while the API
// server is down, as they should be.
type reservedPort struct {
	fd     int
	number int
}

func reservePort() (*reservedPort, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	unix.CloseOnExec(fd)
	number, err := bindLoopback(fd)
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	return &reservedPort{fd: fd, number: number}, nil
}

func bindLoopback(fd int) (int, error) {
	if err := sharePort(fd); err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	address, ok := bound.(*unix.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("bound to an address of type %T", bound)
	}
	return address.Port, nil
}

func sharePort(fd int) error {
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
}

func (p *reservedPort) release() { _ = unix.Close(p.fd) }
