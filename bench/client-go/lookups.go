package main

import (
	"errors"
	"math/rand/v2"
	"time"
)

// lookups measures reads of the first informer while it runs.
func (s *session) lookups(limit time.Duration) (event, error) {
	if len(s.informers) == 0 {
		return nil, errNoServer
	}
	indexer := s.informers[0].GetIndexer()
	keys := indexer.ListKeys()
	if len(keys) == 0 {
		return nil, errors.New("there is no object to look up")
	}
	random := rand.New(rand.NewPCG(1, 1))
	means := map[string]float64{
		"get": meanOf(limit, func() {
			_, _, _ = indexer.GetByKey(keys[random.IntN(len(keys))])
		}),
		"snapshot": meanOf(limit, func() { indexer.List() }),
	}
	if s.options.index {
		ips := indexer.ListIndexFuncValues("ip")
		if len(ips) == 0 {
			return nil, errors.New("there is no pod with an IP")
		}
		means["index"] = meanOf(limit, func() {
			_, _ = indexer.ByIndex("ip", ips[random.IntN(len(ips))])
		})
	}
	return event{"nanoseconds": means}, nil
}

// meanOf repeats an operation for that long, at least 10 times, and returns the mean time in nanoseconds.
func meanOf(limit time.Duration, operation func()) float64 {
	begin := time.Now()
	batch, done := 10, 0
	for {
		for range batch {
			operation()
		}
		done += batch
		elapsed := max(time.Since(begin), 1)
		if elapsed >= limit {
			return float64(elapsed.Nanoseconds()) / float64(done)
		}
		// It reads the clock after a batch that takes about 1 % of the time, so that the clock costs next to nothing.
		batch = max(1, int(float64(done)*limit.Seconds()/100/elapsed.Seconds()))
	}
}

func seconds(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second))
}
