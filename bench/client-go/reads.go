package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// reads measures client-go's cache without a server. With hot it reads only that number of objects.
func reads(limit time.Duration, objects, hot int) (event, error) {
	if objects < 1 || hot > objects {
		return nil, fmt.Errorf("reads of %d of %d objects", hot, objects)
	}
	r := newReading(objects)
	if err := r.check(); err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(1, 1))
	draw := func() int { return random.IntN(objects) }
	if hot > 0 {
		// They are spread evenly over all objects, and so over the memory.
		step := objects / hot
		return r.hot(limit, func() int { return random.IntN(hot) * step })
	}

	means := r.means(limit, draw)
	// Adding to an empty cache, until it is full; then the next cache is filled.
	filling, next := newPodIndexer(), 0
	for name, mean := range map[string]float64{
		"add": meanOf(limit, func() {
			if next == objects {
				filling, next = newPodIndexer(), 0
			}
			_ = filling.Add(r.pods[next])
			next++
		}),
		"update": meanOf(limit, func() { _ = r.indexer.Update(r.newer(draw())) }),
	} {
		means[name] = mean
	}
	besideWriter := r.besideWriter(func() map[string]float64 { return r.means(limit, draw) })
	slowest, updates := r.slowestGet(3 * limit)
	if err := r.check(); err != nil {
		return nil, err
	}
	return event{
		"nanoseconds":              means,
		"nanosecondsBesideWriter":  besideWriter,
		"slowestGetNanoseconds":    slowest.get.Nanoseconds(),
		"slowestOwnGetNanoseconds": slowest.ownGet.Nanoseconds(),
		"updatesMeanwhile":         updates,
	}, nil
}

// hot measures what programs do all the time with the objects that they work on.
func (r *reading) hot(limit time.Duration, draw func() int) (event, error) {
	measure := func() map[string]float64 {
		return map[string]float64{"get": r.meanGet(limit, draw), "indexOne": r.meanIndexOne(limit, draw)}
	}
	means := measure()
	besideWriter := r.besideWriter(measure)
	return event{"nanoseconds": means, "nanosecondsBesideWriter": besideWriter}, r.check()
}

func (r *reading) meanGet(limit time.Duration, draw func() int) float64 {
	return meanOf(limit, func() { _, _, _ = r.indexer.GetByKey(r.keys[draw()]) })
}

func (r *reading) meanIndexOne(limit time.Duration, draw func() int) float64 {
	return meanOf(limit, func() { _, _ = r.indexer.ByIndex("ip", r.addresses[draw()]) })
}

// means measures the operations that change nothing.
func (r *reading) means(limit time.Duration, draw func() int) map[string]float64 {
	return map[string]float64{
		"get":          r.meanGet(limit, draw),
		"indexOne":     r.meanIndexOne(limit, draw),
		"indexHundred": meanOf(limit, func() { _, _ = r.indexer.ByIndex("node", r.nodes[draw()]) }),
		"list":         meanOf(limit, func() { _, _ = r.lister.List(labels.Everything()) }),
		"selector":     meanOf(limit, func() { _, _ = r.lister.List(appSeven) }),
	}
}

// besideWriter measures the same operations while a goroutine updates random pods.
func (r *reading) besideWriter(measure func() map[string]float64) map[string]float64 {
	var isOver atomic.Bool
	var writer sync.WaitGroup
	random := rand.New(rand.NewPCG(3, 2))
	writer.Go(func() {
		for !isOver.Load() {
			_ = r.indexer.Update(r.newer(random.IntN(len(r.pods))))
		}
	})
	means := measure()
	isOver.Store(true)
	writer.Wait()
	return means
}

var appSeven = labels.SelectorFromSet(labels.Set{"app": "app-7"})

// reading is a cache full of pods, and the keys and values to look up in it.
type reading struct {
	pods []*v1.Pod
	// They are copies, so that a lookup does not bring a pod into the processor's cache beforehand.
	keys, addresses, nodes []string

	indexer cache.Indexer
	lister  corev1.PodLister
	version uint64
}

func newReading(objects int) *reading {
	r := &reading{indexer: newPodIndexer(), version: uint64(objects)}
	r.lister = corev1.NewPodLister(r.indexer)
	for i := range objects {
		pod := smallPod(i)
		r.pods = append(r.pods, pod)
		r.keys = append(r.keys, pod.Namespace+"/"+pod.Name)
		r.addresses = append(r.addresses, strings.Clone(pod.Status.PodIP))
		r.nodes = append(r.nodes, strings.Clone(pod.Spec.NodeName))
		_ = r.indexer.Add(pod)
	}
	return r
}

func newPodIndexer() cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		"node":               indexBy(nodeName),
		"ip":                 indexBy(podIP),
	})
}

func smallPod(i int) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       fmt.Sprintf("ns-%d", i%20),
			Name:            fmt.Sprintf("pod-%d", i),
			UID:             types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)),
			ResourceVersion: strconv.Itoa(i + 1),
			Labels:          map[string]string{"app": fmt.Sprintf("app-%d", i/100), "tier": fmt.Sprintf("tier-%d", i%3)},
		},
		Spec: v1.PodSpec{
			NodeName:   fmt.Sprintf("node-%d", i/100),
			Containers: []v1.Container{{Name: "main", Image: "web:1"}},
		},
		Status: v1.PodStatus{
			PodIP: fmt.Sprintf("10.%d.%d.%d", i/65536, i/256%256, i%256),
			Phase: v1.PodRunning,
		},
	}
}

// newer returns the pod's next version, which shares unchanged parts with the last.
func (r *reading) newer(i int) *v1.Pod {
	pod := *r.pods[i]
	r.version++
	pod.ResourceVersion = strconv.FormatUint(r.version, 10)
	return &pod
}

// check compares the results of the measured operations with what was put into the cache.
func (r *reading) check() error {
	found := 0
	for i, key := range r.keys {
		isIt := func(object any) bool { return object.(*v1.Pod).Name == r.pods[i].Name }
		object, exists, _ := r.indexer.GetByKey(key)
		hits, _ := r.indexer.ByIndex("ip", r.addresses[i])
		if exists && isIt(object) && len(hits) == 1 && isIt(hits[0]) {
			found++
		}
	}
	hundred, _ := r.indexer.ByIndex("node", "node-0")
	all, _ := r.lister.List(labels.Everything())
	selected, _ := r.lister.List(appSeven)
	if found != len(r.pods) || len(hundred) != r.inGroup(0) ||
		len(all) != len(r.pods) || len(selected) != r.inGroup(7) {
		return fmt.Errorf("wrong answers: %d found, index %d, list %d, selector %d",
			found, len(hundred), len(all), len(selected))
	}
	return nil
}

// inGroup returns how many pods the node and the app of this number have.
func (r *reading) inGroup(number int) int {
	return min(max(len(r.pods)-number*100, 0), 100)
}

// slowestGet has two goroutines get pods while one updates and one lists. It returns the slowest get and the number
// of updates.
func (r *reading) slowestGet(limit time.Duration) (slowest, int) {
	var isOver atomic.Bool
	var tasks sync.WaitGroup
	repeat := func(operation func()) {
		tasks.Go(func() {
			for !isOver.Load() {
				operation()
			}
		})
	}
	var readers [2]slowest
	for reader := range readers {
		random := rand.New(rand.NewPCG(2, uint64(reader)))
		tasks.Go(func() {
			// The goroutine has a thread to itself, so that the thread's CPU time is the goroutine's.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			slowest := newSlowest()
			for !isOver.Load() {
				key := r.keys[random.IntN(len(r.keys))]
				slowest.time(func() { _, _, _ = r.indexer.GetByKey(key) })
			}
			readers[reader] = slowest
		})
	}
	updates := 0
	random := rand.New(rand.NewPCG(3, 1))
	repeat(func() {
		_ = r.indexer.Update(r.newer(random.IntN(len(r.pods))))
		updates++
	})
	repeat(func() { _, _ = r.lister.List(labels.Everything()) })

	time.Sleep(limit)
	isOver.Store(true)
	tasks.Wait()
	return readers[0].or(readers[1]), updates
}
