package main

import (
	"context"
	"fmt"
	"time"
)

// answer is the line of JSON that answers a command.
type answer struct {
	OK           bool   `json:"ok"`
	Error        string `json:"error,omitempty"`
	Revision     int64  `json:"revision,omitempty"`
	APIServerPID int    `json:"apiserver_pid,omitempty"`
	// Graceful is false if a stop needed SIGKILL, or was requested with it.
	Graceful *bool `json:"graceful,omitempty"`
	Millis   int64 `json:"millis"`
}

// execute carries out one line of stdin.
func (s *supervisor) execute(ctx context.Context, command string) answer {
	var a answer
	begin := time.Now()
	if err := s.dispatch(ctx, command, &a); err != nil {
		a.Error = err.Error()
	}
	a.OK = a.Error == ""
	a.Millis = time.Since(begin).Milliseconds()
	if s.apiserver != nil {
		a.APIServerPID = s.apiserver.pid()
	}
	return a
}

func (s *supervisor) dispatch(ctx context.Context, command string, a *answer) (err error) {
	stop := func(gracefully bool) error {
		graceful, err := s.stopAPIServer(gracefully)
		if err == nil {
			a.Graceful = &graceful
		}
		return err
	}
	switch command {
	case "restart", "kill-restart":
		if err := stop(command == "restart"); err != nil {
			return err
		}
		return s.startAPIServer(ctx)
	case "stop-apiserver":
		return stop(true)
	case "start-apiserver":
		return s.startAPIServer(ctx)
	case "compact":
		a.Revision, err = s.etcd.compact(ctx)
		return err
	case "revision":
		a.Revision = s.etcd.revision()
		return nil
	default:
		return fmt.Errorf("unknown command %q; known are restart, kill-restart, "+
			"stop-apiserver, start-apiserver, compact, revision", command)
	}
}
