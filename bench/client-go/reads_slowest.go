package main

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// slowest is the slowest get of a thread, by the clock and by what the library has to answer for: while a get was under
// way the scheduler, or whoever runs this machine, may have given the core to somebody else.
type slowest struct {
	get time.Duration
	// The thread's own CPU time, unless it has waited: then the clock's.
	ownGet time.Duration
}

func newSlowest() slowest { return slowest{} }

func (s *slowest) time(get func()) {
	waits, cpu := waitsOfThisThread(), cpuOfThisThread()
	before := time.Now()
	get()
	took := time.Since(before)
	s.get = max(s.get, took)
	if took <= s.ownGet {
		return
	}
	if own := cpuOfThisThread() - cpu; waitsOfThisThread() == waits {
		took = min(took, own)
	}
	s.ownGet = max(s.ownGet, took)
}

func (s slowest) or(other slowest) slowest {
	return slowest{get: max(s.get, other.get), ownGet: max(s.ownGet, other.ownGet)}
}

// waitsOfThisThread is how often it gave its core away by itself.
func waitsOfThisThread() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &usage); err != nil {
		return 0
	}
	return usage.Nvcsw
}

func cpuOfThisThread() time.Duration {
	var time unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &time); err != nil {
		return 0
	}
	return timeOf(time)
}

func timeOf(spec unix.Timespec) time.Duration { return time.Duration(spec.Nano()) }
