package main

import (
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Has the time before the change was sent, as microseconds of Unix time.
const sentAtAnnotation = "bench/sent-at"

// The namespace of the objects that `until` asks for.
const askedNamespace = "bench"

// handler counts what it is told; for an object that may be asked for it remembers the last version.
type handler struct {
	lock    sync.Mutex
	changed *sync.Cond
	stuck   bool
	heard   tally
	told    map[string]uint64
}

type tally struct {
	updates int
	delays  delays
}

func newHandler() *handler {
	h := &handler{told: map[string]uint64{}}
	h.changed = sync.NewCond(&h.lock)
	return h
}

func (h *handler) OnAdd(object any, _ bool) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.hear(object.(metav1.Object))
}

func (h *handler) OnUpdate(old, object any) {
	h.lock.Lock()
	defer h.lock.Unlock()
	// A list again tells everything again.
	if new := object.(metav1.Object); new.GetResourceVersion() != old.(metav1.Object).GetResourceVersion() {
		h.hear(new)
		h.heard.updates++
		if sent, err := strconv.ParseInt(sentAt(object), 10, 64); err == nil {
			h.heard.delays.add(delayOf(time.Since(time.UnixMicro(sent))))
		}
	}
}

func (h *handler) OnDelete(any) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.hang()
}

func (h *handler) hear(object metav1.Object) {
	h.hang()
	if object.GetNamespace() != askedNamespace {
		return
	}
	if version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64); err == nil {
		h.told[askedNamespace+"/"+object.GetName()] = version
		h.changed.Broadcast()
	}
}

// hang never returns from a handler that is to be stuck.
func (h *handler) hang() {
	if h.stuck {
		h.lock.Unlock()
		select {}
	}
}

func (h *handler) getStuck() {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.stuck = true
}

// until waits for a version of an object, unless the handler is stuck, and returns what was heard by then.
func (h *handler) until(key string, version uint64) (tally, bool) {
	h.lock.Lock()
	defer h.lock.Unlock()
	for !h.stuck && h.told[key] < version {
		h.changed.Wait()
	}
	return h.heard, h.stuck
}

func sentAt(object any) string {
	if object, ok := object.(*unstructured.Unstructured); ok {
		// Its GetAnnotations copies all of them.
		return textAt(object, "metadata", "annotations", sentAtAnnotation)
	}
	return object.(metav1.Object).GetAnnotations()[sentAtAnnotation]
}

type delays struct {
	count         int
	sum, greatest time.Duration
}

func delayOf(delay time.Duration) delays {
	return delays{count: 1, sum: delay, greatest: delay}
}

func (d *delays) add(other delays) {
	d.count += other.count
	d.sum += other.sum
	d.greatest = max(d.greatest, other.greatest)
}

func (d delays) mean() time.Duration {
	return d.sum / time.Duration(max(d.count, 1))
}
