package main

import (
	"context"
	"shared"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// The number of pods in each ReplicaSet.
const podsOfASet = 10

// controller reconciles pods: for each changed pod it reads the pod, its node and the other pods of its owner.
type controller struct {
	pods, nodes cache.SharedIndexInformer
	podLister   corev1.PodLister
	nodeLister  corev1.NodeLister
	queue       workqueue.TypedInterface[string]
	synced      []cache.DoneChecker

	lock    sync.Mutex
	changed *sync.Cond
	// The number of keys that were queued and are not done yet.
	pending   map[string]struct{}
	isRunning bool
	done      reconciled
	versions  map[string]uint64
}

// reconciled counts what the controller did after it had reconciled the initial list.
type reconciled struct {
	count int
	// Reconciliations that found no ready node, or a wrong number of siblings.
	incomplete int
	ready      int
	delays     shared.Delays
}

func newController(config *rest.Config) (*controller, error) {
	factory, err := newTypedFactory(config)
	if err != nil {
		return nil, err
	}
	pods, nodes := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	c := &controller{
		pods: pods.Informer(), podLister: pods.Lister(),
		nodes: nodes.Informer(), nodeLister: nodes.Lister(),
		queue:    workqueue.NewTyped[string](),
		pending:  map[string]struct{}{},
		versions: map[string]uint64{},
	}
	c.changed = sync.NewCond(&c.lock)
	if err := c.pods.AddIndexers(cache.Indexers{"owner": indexBy(owner)}); err != nil {
		return nil, err
	}
	registration, err := c.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueue,
		UpdateFunc: func(_, pod any) { c.enqueue(pod) },
		DeleteFunc: c.enqueue,
	})
	if err != nil {
		return nil, err
	}
	c.synced = []cache.DoneChecker{
		c.pods.HasSyncedChecker(), c.nodes.HasSyncedChecker(), registration.HasSyncedChecker(),
	}
	return c, nil
}

func owner(pod any) string {
	if reference := metav1.GetControllerOf(pod.(*v1.Pod)); reference != nil {
		return string(reference.UID)
	}
	return ""
}

func (c *controller) enqueue(pod any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(pod)
	if err != nil {
		return
	}
	c.lock.Lock()
	c.pending[key] = struct{}{}
	c.lock.Unlock()
	c.queue.Add(key)
}

// run works through the queue once the caches are synced.
func (c *controller) run() {
	go c.nodes.Run(context.Background().Done())
	cache.WaitFor(context.Background(), "", c.synced...)
	for {
		key, isOver := c.queue.Get()
		if isOver {
			return
		}
		c.lock.Lock()
		delete(c.pending, key)
		c.lock.Unlock()
		c.reconcile(key)
		c.queue.Done(key)
	}
}

func (c *controller) reconcile(key string) {
	namespace, name, _ := strings.Cut(key, "/")
	pod, err := c.podLister.Pods(namespace).Get(name)
	if err != nil {
		return
	}
	ready, isComplete := c.look(pod)
	c.lock.Lock()
	defer c.lock.Unlock()
	defer c.changed.Broadcast()
	if namespace == askedNamespace {
		c.versions[key], _ = strconv.ParseUint(pod.ResourceVersion, 10, 64)
		return
	}
	c.done.count++
	c.done.ready += ready
	if !isComplete {
		c.done.incomplete++
	}
	if c.isRunning {
		c.done.delays.AddSince(sentAt(pod))
	}
}

// look reads what a controller would base a decision on: whether the node is ready, and how many pods of this owner
// are.
func (c *controller) look(pod *v1.Pod) (ready int, isComplete bool) {
	siblings, err := c.pods.GetIndexer().ByIndex("owner", owner(pod))
	if err != nil {
		return 0, false
	}
	for _, sibling := range siblings {
		isReady := func(condition v1.PodCondition) bool {
			return condition.Type == v1.PodReady && condition.Status == v1.ConditionTrue
		}
		if slices.ContainsFunc(sibling.(*v1.Pod).Status.Conditions, isReady) {
			ready++
		}
	}
	node, err := c.nodeLister.Get(pod.Spec.NodeName)
	if err != nil {
		return ready, false
	}
	isReady := func(condition v1.NodeCondition) bool {
		return condition.Type == v1.NodeReady && condition.Status == v1.ConditionTrue
	}
	return ready, len(siblings) == podsOfASet && slices.ContainsFunc(node.Status.Conditions, isReady)
}

// waitForIdle returns when every pod of the initial list was reconciled, and starts to count.
func (c *controller) waitForIdle() {
	c.lock.Lock()
	defer c.lock.Unlock()
	for len(c.pending) > 0 || c.done.count < len(c.pods.GetStore().ListKeys())-1 {
		c.changed.Wait()
	}
	c.done, c.isRunning = reconciled{}, true
}

func (c *controller) until(key string, version uint64) event {
	c.lock.Lock()
	defer c.lock.Unlock()
	for c.versions[key] < version {
		c.changed.Wait()
	}
	answer := event{"updates": c.done.count, "incomplete": c.done.incomplete, "ready": c.done.ready}
	return c.done.delays.AddTo(answer)
}
