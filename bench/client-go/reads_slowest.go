package main

import (
	"syscall"
	"time"
)

// slowest is the slowest get of a thread, and the slowest for which the library has to answer: while a get was under way
// the scheduler may have given the core to somebody else.
type slowest struct {
	get time.Duration
	// Without those during which the thread was preempted and had not waited.
	unpreemptedGet time.Duration
}

func newSlowest() slowest { return slowest{} }

func (s *slowest) time(get func()) {
	former := switchesOfThisThread()
	before := time.Now()
	get()
	took := time.Since(before)
	s.get = max(s.get, took)
	if took > s.unpreemptedGet && !switchesOfThisThread().arePreemptionSince(former) {
		s.unpreemptedGet = took
	}
}

func (s slowest) or(other slowest) slowest {
	s.get = max(s.get, other.get)
	s.unpreemptedGet = max(s.unpreemptedGet, other.unpreemptedGet)
	return s
}

// switches is how often a thread gave its core away: because it waited, and because it was made to.
type switches struct{ voluntary, involuntary int64 }

func switchesOfThisThread() switches {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &usage); err != nil {
		return switches{}
	}
	return switches{voluntary: usage.Nvcsw, involuntary: usage.Nivcsw}
}

func (s switches) arePreemptionSince(former switches) bool {
	return s.involuntary > former.involuntary && s.voluntary == former.voluntary
}
