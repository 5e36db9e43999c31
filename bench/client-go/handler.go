package main

import (
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The annotation holds the time just before the change was sent, in microseconds of Unix time.
const sentAtAnnotation = "bench/sent-at"

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
	delays  delays
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
		if sent, err := strconv.ParseInt(sentAt(object), 10, 64); err == nil {
			h.seen.delays.add(time.Since(time.UnixMicro(sent)))
		}
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
	seen.delays.first = slices.Clone(seen.delays.first)
	return seen, h.stuck
}

func sentAt(object any) string {
	if object, ok := object.(*unstructured.Unstructured); ok {
		// Its GetAnnotations copies all of them.
		return textAt(object, "metadata", "annotations", sentAtAnnotation)
	}
	return object.(metav1.Object).GetAnnotations()[sentAtAnnotation]
}

// The number of delays kept for the 99th percentile. It is bounded because the benchmark measures memory too.
const delaysKept = 10_000

type delays struct {
	count         int
	sum, greatest time.Duration
	first         []time.Duration
}

func (d *delays) add(delay time.Duration) {
	d.count++
	d.sum += delay
	d.greatest = max(d.greatest, delay)
	if len(d.first) < delaysKept {
		d.first = append(d.first, delay)
	}
}

func (d *delays) addAll(other delays) {
	d.count += other.count
	d.sum += other.sum
	d.greatest = max(d.greatest, other.greatest)
	d.first = append(d.first, other.first...)
}

func (d delays) mean() time.Duration {
	return d.sum / time.Duration(max(d.count, 1))
}

// percentile99 returns the 99th percentile of the delays that were kept.
func (d delays) percentile99() time.Duration {
	if len(d.first) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d.first))
	return sorted[(len(sorted)-1)*99/100]
}

func (d delays) addTo(answer event) event {
	answer["delayMeanSeconds"] = d.mean().Seconds()
	answer["delayP99Seconds"] = d.percentile99().Seconds()
	answer["delayMaxSeconds"] = d.greatest.Seconds()
	return answer
}
