package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"shared"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

// session holds an informer for each resource that the arguments name, and the handlers of the first informer.
type session struct {
	options   options
	informers []cache.SharedIndexInformer
	handlers  []*handler
	// Set only with --reconcile.
	controller *controller
	// Work queues, which need no server.
	queues shared.QueueBench
	// Done when the initial list is in the caches and was dispatched to the handlers.
	synced []cache.DoneChecker
}

func newSession(options options) (*session, error) {
	s := &session{options: options, queues: shared.QueueBench{New: newQueue}}
	if options.kubeconfig == "" {
		return s, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", options.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	if options.reconcile {
		if s.controller, err = newController(config); err != nil {
			return nil, err
		}
		s.informers = []cache.SharedIndexInformer{s.controller.pods}
		s.synced = s.controller.synced
		return s, nil
	}
	if s.informers, err = newInformers(config, options); err != nil {
		return nil, err
	}
	for _, informer := range s.informers {
		s.synced = append(s.synced, informer.HasSyncedChecker())
		if options.dropManagedFields {
			if err := informer.SetTransform(withoutManagedFields); err != nil {
				return nil, err
			}
		}
	}
	first := s.informers[0]
	if options.index {
		if err := first.AddIndexers(cache.Indexers{"node": indexBy(nodeName), "ip": indexBy(podIP)}); err != nil {
			return nil, err
		}
	}
	for range options.subscriptions {
		handler := newHandler()
		registration, err := first.AddEventHandler(handler)
		if err != nil {
			return nil, err
		}
		s.handlers = append(s.handlers, handler)
		s.synced = append(s.synced, registration.HasSyncedChecker())
	}
	return s, nil
}

// newQueue makes the queue that controllers of client-go have. Without a name it has no metrics.
func newQueue() shared.Queue {
	return workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
}

func newInformers(config *rest.Config, options options) ([]cache.SharedIndexInformer, error) {
	var made []cache.SharedIndexInformer
	switch options.view {
	case viewTyped:
		factory, err := newTypedFactory(config)
		if err != nil {
			return nil, err
		}
		made = append(made, factory.Core().V1().Pods().Informer())
	case viewDynamic:
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
		for _, resource := range options.resources {
			made = append(made, factory.ForResource(resource).Informer())
		}
	case viewMetadata:
		// This client asks for protobuf by default.
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		factory := metadatainformer.NewSharedInformerFactory(client, 0)
		for _, resource := range options.resources {
			made = append(made, factory.ForResource(resource).Informer())
		}
	}
	return made, nil
}

func newTypedFactory(config *rest.Config) (informers.SharedInformerFactory, error) {
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return informers.NewSharedInformerFactory(client, 0), nil
}

func withoutManagedFields(object any) (any, error) {
	if object, ok := object.(metav1.Object); ok {
		object.SetManagedFields(nil)
	}
	return object, nil
}

var errNoServer = errors.New("there is no informer without --kubeconfig")

func (s *session) start() (event, error) {
	begin := time.Now()
	if len(s.informers) == 0 {
		return nil, errNoServer
	}
	if s.controller != nil {
		go s.controller.run()
	}
	for _, informer := range s.informers {
		go informer.Run(context.Background().Done())
	}
	cache.WaitFor(context.Background(), "", s.synced...)
	if s.controller != nil {
		s.controller.waitForIdle()
	}
	wall := time.Since(begin)

	objects := 0
	for _, informer := range s.informers {
		objects += len(informer.GetStore().ListKeys())
	}
	return event{"objects": objects, "wallSeconds": wall.Seconds()}, nil
}

func (s *session) until(key, resourceVersion string) (event, error) {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return nil, err
	}
	if s.controller != nil {
		return s.controller.until(key, version), nil
	}
	if len(s.handlers) == 0 {
		return nil, errors.New("there is no handler")
	}
	updates, delays := -1, shared.Delays{}
	for _, handler := range s.handlers {
		seen, isStuck := handler.until(key, version)
		if isStuck {
			continue
		}
		if updates < 0 || seen.updates < updates {
			updates = seen.updates
		}
		delays.AddAll(seen.delays)
	}
	return delays.AddTo(event{"updates": max(updates, 0)}), nil
}

// The interval at which `current` looks at the caches.
const lookInterval = 2 * time.Millisecond

// current waits until the informer of each resource has reached that version.
func (s *session) current(versions map[string]uint64) (event, error) {
	for i, resource := range s.options.resources {
		version, isAsked := versions[resource.String()]
		for isAsked {
			seen, _ := strconv.ParseUint(s.informers[i].LastSyncResourceVersion(), 10, 64)
			if seen >= version {
				break
			}
			time.Sleep(lookInterval)
		}
	}
	return event{}, nil
}

func (s *session) stuck() error {
	if len(s.handlers) == 0 {
		return errors.New("there is no handler")
	}
	s.handlers[0].getStuck()
	return nil
}
