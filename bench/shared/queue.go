package shared

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Queue is a work queue of client-go, or one with its methods.
type Queue interface {
	Add(item string)
	Get() (item string, shutdown bool)
	Done(item string)
	Len() int
	ShutDown()
}

// QueueBench holds keys, and a queue that was filled with them.
type QueueBench struct {
	New  func() Queue
	keys []string
	// The queue of queue-fill, which must not be freed before it is measured.
	filled Queue
}

// Obey carries out a command of the protocol, and returns the answer with its name. The last result is false if it is no
// command for a queue.
func (b *QueueBench) Obey(command, argument string) (string, Event, error, bool) {
	switch command {
	case "queue-keys":
		var wish struct{ Items int }
		if err := json.Unmarshal([]byte(argument), &wish); err != nil {
			return "", nil, err, true
		}
		b.makeKeys(wish.Items)
		return "keys", Event{}, nil, true
	case "queue-fill":
		return "filled", Event{"waiting": b.fill()}, nil, true
	case "queue":
		answer, err := b.measure()
		return "queue", answer, err, true
	}
	return "", nil, nil, false
}

func (b *QueueBench) makeKeys(items int) {
	b.keys = make([]string, items)
	for i := range b.keys {
		b.keys[i] = fmt.Sprintf("namespace-%d/name-of-a-pod-%d", i%300, i)
	}
}

// fill adds all keys to a new queue, which stays.
func (b *QueueBench) fill() int {
	b.filled = b.New()
	b.addAll(b.filled)
	return b.filled.Len()
}

func (b *QueueBench) addAll(queue Queue) {
	for _, key := range b.keys {
		queue.Add(key)
	}
}

// measure adds all keys to a new queue, then lets workers get and finish all of them. It does so twice, with one worker and
// with eight, and answers with the mean times of an item.
func (b *QueueBench) measure() (Event, error) {
	answer := map[string]any{}
	for name, workers := range map[string]int{"One": 1, "Eight": 8} {
		queue := b.New()
		begin := time.Now()
		b.addAll(queue)
		added := time.Since(begin)
		if queue.Len() != len(b.keys) {
			return nil, fmt.Errorf("%d of %d items wait", queue.Len(), len(b.keys))
		}
		begin = time.Now()
		if err := b.work(queue, workers); err != nil {
			return nil, err
		}
		items := float64(len(b.keys))
		answer["add"] = float64(added.Nanoseconds()) / items
		answer["get"+name] = float64(time.Since(begin).Nanoseconds()) / items
		queue.ShutDown()
	}
	return Event{"nanoseconds": answer}, nil
}

// work lets workers process all items. They stop when each item was processed once.
func (b *QueueBench) work(queue Queue, workers int) error {
	var left, length atomic.Int64
	left.Store(int64(len(b.keys)))
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			// A worker takes an item only if there is one for it: not all queues hand out the rest after ShutDown.
			for left.Add(-1) >= 0 {
				key, _ := queue.Get()
				length.Add(int64(len(key)))
				queue.Done(key)
			}
		})
	}
	group.Wait()
	expected := int64(0)
	for _, key := range b.keys {
		expected += int64(len(key))
	}
	if length.Load() != expected || queue.Len() != 0 {
		return fmt.Errorf("keys of %d bytes were processed, not %d; %d items are left", length.Load(), expected, queue.Len())
	}
	return nil
}
