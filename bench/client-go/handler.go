package main

import (
	"shared"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The namespace of the objects that `until` asks for.
const askedNamespace = "bench"

// handler counts notifications. It remembers the last version of each object that `until` may ask for.
type handler struct {
	lock     sync.Mutex
	changed  *sync.Cond
	stuck    bool
	seen     tally
	versions map[string]uint64
}

type tally struct {
	updates int
	delays  shared.Delays
}

func newHandler() *handler {
	h := &handler{versions: map[string]uint64{}}
	h.changed = sync.NewCond(&h.lock)
	return h
}

func (h *handler) OnAdd(object any, _ bool) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.record(object.(metav1.Object))
}

func (h *handler) OnUpdate(old, object any) {
	h.lock.Lock()
	defer h.lock.Unlock()
	// A re-list repeats versions that the handler has seen.
	if new := object.(metav1.Object); new.GetResourceVersion() != old.(metav1.Object).GetResourceVersion() {
		h.record(new)
		h.seen.updates++
		h.seen.delays.AddSince(sentAt(object))
	}
}

func (h *handler) OnDelete(any) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.hang()
}

func (h *handler) record(object metav1.Object) {
	h.hang()
	if object.GetNamespace() != askedNamespace {
		return
	}
	if version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64); err == nil {
		h.versions[askedNamespace+"/"+object.GetName()] = version
		h.changed.Broadcast()
	}
}

// hang never returns if the handler is to be stuck.
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

// until waits for a version of an object, unless the handler is stuck, and returns the counts at that moment.
func (h *handler) until(key string, version uint64) (tally, bool) {
	h.lock.Lock()
	defer h.lock.Unlock()
	for !h.stuck && h.versions[key] < version {
		h.changed.Wait()
	}
	seen := h.seen
	seen.delays = seen.delays.Clone()
	return seen, h.stuck
}

func sentAt(object any) string {
	if object, ok := object.(*unstructured.Unstructured); ok {
		// Its GetAnnotations copies all of them.
		return textAt(object, "metadata", "annotations", shared.SentAt)
	}
	return object.(metav1.Object).GetAnnotations()[shared.SentAt]
}
