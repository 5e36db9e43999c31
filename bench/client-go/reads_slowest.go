package main

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// slowest is the slowest get of a thread, by the clock and by the thread's own time. The clock includes time that the
// library is not responsible for: the operating system, or the hypervisor, may take the core away in the middle of a
// get.
type slowest struct {
	get time.Duration
	// The thread's CPU time; the clock's time if the thread has waited.
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

// waitsOfThisThread returns how often this thread has given its core away voluntarily.
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
