package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
)

// The supervisor's children die with the thread that started them (see childAttributes). So the main goroutine, which
// starts them, stays on the main thread, which ends only with the process.
func init() { runtime.LockOSThread() }

// started is the line of JSON that reports that the control plane is ready.
type started struct {
	Server     string `json:"server"`
	Token      string `json:"token"`
	CAFile     string `json:"ca_file"`
	Kubeconfig string `json:"kubeconfig"`
	PID        int    `json:"pid"`
}

// errStdinClosed ends the control plane: the process at the other end is done, or dead. A closed pipe is the one
// message that even a killed process sends.
var errStdinClosed = errors.New("stdin was closed")

func run(args []string) int {
	options, err := parseOptions(args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "control-plane run:", err)
		return 2
	}
	if err := checkVersion(); err != nil {
		fmt.Fprintln(os.Stderr, "control-plane run:", err)
		return 1
	}

	// When the reader of stdout has gone, that is an error like others, not a reason to exit without cleaning up.
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(context.Background())
	signals, stopSignals := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stopSignals()
	lines := make(chan string)
	go func() {
		cancel(readLines(signals, os.Stdin, lines))
	}()

	s := &supervisor{options: options}
	err = s.serve(signals, lines)
	if signals.Err() != nil {
		err = nil // asked to end, whatever that interrupted
	}
	if err := errors.Join(err, s.close()); err != nil {
		fmt.Fprintln(os.Stderr, "control-plane run:", err)
		return 1
	}
	return 0
}

// serve starts the control plane and executes commands until ctx is done or a part of the control plane fails.
func (s *supervisor) serve(ctx context.Context, lines <-chan string) error {
	if err := s.start(ctx); err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(started{
		Server:     s.url(),
		Token:      s.credentials.token,
		CAFile:     s.credentials.caFile,
		Kubeconfig: s.credentials.kubeconfigFile,
		PID:        os.Getpid(),
	}); err != nil {
		return err
	}
	for {
		select {
		case line := <-lines:
			if err := out.Encode(s.execute(ctx, line)); err != nil {
				return err
			}
		case <-ended(s.apiserver):
			return s.apiserver.endedError()
		case <-ended(s.controllerManager):
			return s.controllerManager.endedError()
		case err := <-s.etcd.server.Err():
			return fmt.Errorf("etcd failed: %w", err)
		case <-ctx.Done():
			return nil
		}
	}
}

// ended returns a channel that is closed when c has exited, and never if c is nil.
func ended(c *child) <-chan struct{} {
	if c == nil {
		return nil
	}
	return c.done
}

// readLines passes on the lines that are not empty, until the input ends.
func readLines(ctx context.Context, input io.Reader, lines chan<- string) error {
	scanner := bufio.NewScanner(input)
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		if line == "" {
			continue
		}
		select {
		case lines <- line:
		case <-ctx.Done():
			return nil
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("read commands: %w", err)
	}
	return errStdinClosed
}
