package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
)

func TestReservedPort(t *testing.T) {
	port, err := reservePort()
	if err != nil {
		t.Fatal(err)
	}
	defer port.release()
	address := fmt.Sprintf("127.0.0.1:%d", port.number)

	if listener, err := net.Listen("tcp4", address); err == nil {
		_ = listener.Close()
		t.Error("another process could listen on the reserved port")
	}
	if _, err := net.Dial("tcp4", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("without an API server: want connection refused, got %v", err)
	}

	// Twice, for a restart: the first connection leaves its side in TIME_WAIT.
	for range 2 {
		listener, err := listenShared(t.Context(), address)
		if err != nil {
			t.Fatalf("listen as the API server does: %v", err)
		}
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_ = conn.Close()
			}
		}()
		// Many, because the kernel would spread them if both sockets counted.
		for range 50 {
			conn, err := net.Dial("tcp4", address)
			if err != nil {
				t.Fatalf("connect: %v", err)
			}
			_ = conn.Close()
		}
		_ = listener.Close()
	}
}

// listenShared listens as kube-apiserver --permit-port-sharing does.
func listenShared(ctx context.Context, address string) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var err error
		if controlErr := raw.Control(func(fd uintptr) { err = sharePort(int(fd)) }); controlErr != nil {
			return controlErr
		}
		return err
	}}
	return config.Listen(ctx, "tcp4", address)
}
