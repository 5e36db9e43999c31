package main

import (
	"syscall"
	"time"
)

// long is what takes anything that was interrupted in a way that matters.
const long = 50 * time.Microsecond

// slowest is the slowest get of a thread, and the slowest for which the library has to answer: while a get was under way
// the scheduler may have given the core to somebody else.
type slowest struct {
	get time.Duration
	// Without those during which the thread was preempted and had not waited.
	unpreemptedGet time.Duration
	switches       switches
	since          time.Time
}

func newSlowest() slowest {
	return slowest{switches: switchesOfThisThread(), since: time.Now()}
}

func (s *slowest) time(get func()) {
	before := time.Now()
	if before.Sub(s.since) > long {
		// What happened between two gets is not this one's.
		s.switches = switchesOfThisThread()
		before = time.Now()
	}
	get()
	s.since = time.Now()
	took := s.since.Sub(before)
	s.get = max(s.get, took)
	if took > long {
		former := s.switches
		s.switches = switchesOfThisThread()
		if s.switches.arePreemptionSince(former) {
			return
		}
	}
	s.unpreemptedGet = max(s.unpreemptedGet, took)
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
