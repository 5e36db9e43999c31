package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// child is a process started from this same binary.
type child struct {
	name    string
	command *exec.Cmd
	logFile string        // "" when it logs to stderr
	done    chan struct{} // closed when the process has ended
	err     error         // how it ended; valid once done is closed
}

// startChild runs `control-plane name args...`. It must be called from the main
// goroutine, for the reason given at childAttributes.
func startChild(name string, args []string, logFile string) (*child, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	log := os.Stderr
	if logFile != "" {
		// Append: after a restart the log of the previous run still matters.
		log, err = os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", name, err)
		}
		defer func() { _ = log.Close() }()
	}
	command := exec.Command(binary, append([]string{name}, args...)...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = childAttributes()
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c := &child{name: name, command: command, logFile: logFile, done: make(chan struct{})}
	go func() {
		c.err = command.Wait()
		close(c.done)
	}()
	return c, nil
}

func (c *child) pid() int { return c.command.Process.Pid }

// terminate asks the process to exit and kills it if it has not exited after the timeout. It reports whether asking was
// enough.
func (c *child) terminate(timeout time.Duration) bool {
	_ = c.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.done:
		return true
	case <-time.After(timeout):
		c.kill()
		return false
	}
}

// kill ends the process at once and waits until it has exited.
func (c *child) kill() {
	_ = c.command.Process.Kill()
	<-c.done
}

// endedError reports an unexpected exit, with the end of the log, where the reason stands.
func (c *child) endedError() error {
	how := "with exit code 0"
	if c.err != nil {
		how = c.err.Error()
	}
	return fmt.Errorf("%s ended unexpectedly: %s%s", c.name, how, c.logTail())
}

// logTail is the last part of the log, as a text to append to an error.
func (c *child) logTail() string {
	const lines = 30
	if c.logFile == "" {
		return ""
	}
	content, err := os.ReadFile(c.logFile)
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	tail := all[max(0, len(all)-lines):]
	return fmt.Sprintf("\n--- the last lines of its log\n%s\n---", strings.Join(tail, "\n"))
}
