// A shared informer of client-go, to be asked over stdin what it knows:
//
//	until NAMESPACE/NAME    answers "there" once that object is in the store
//	state                   answers with one line of JSON: resourceVersion by key
//	contents                the same once all is there that was at the start: objects without resourceVersion by key
//
// It ends with stdin. With a fourth argument, it accepts nothing but that content type.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) < 4 || len(os.Args) > 5 {
		log.Fatal("usage: shared-informer KUBECONFIG VERSION RESOURCE [CONTENT-TYPE]")
	}
	contentType := ""
	if len(os.Args) == 5 {
		contentType = os.Args[4]
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], contentType); err != nil {
		log.Fatal(err)
	}
}

func run(kubeconfig, version, resource, contentType string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.ContentType, config.AcceptContentTypes = contentType, contentType
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer, err := factory.ForResource(schema.GroupVersionResource{Version: version, Resource: resource})
	if err != nil {
		return err
	}
	changed := newSignal()
	handler, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed.send() },
		UpdateFunc: func(any, any) { changed.send() },
		DeleteFunc: func(any) { changed.send() },
	})
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)

	store := informer.Informer().GetStore()
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		var key string
		if _, err := fmt.Sscanf(commands.Text(), "until %s", &key); err == nil {
			changed.wait(func() bool {
				_, exists, _ := store.GetByKey(key)
				return exists
			})
			fmt.Println("there")
			continue
		}
		of := resourceVersion
		if commands.Text() == "contents" {
			cache.WaitForCacheSync(stop, handler.HasSynced)
			of = content
		}
		if err := printState(store, of); err != nil {
			return err
		}
	}
	return commands.Err()
}

func resourceVersion(object metav1.Object) any {
	return object.GetResourceVersion()
}

// content is a copy: others read the object that is in the store.
func content(object metav1.Object) any {
	if it, ok := object.(runtime.Object); ok {
		object, _ = it.DeepCopyObject().(metav1.Object)
	}
	object.SetResourceVersion("")
	return object
}

func printState(store cache.Store, of func(metav1.Object) any) error {
	state := map[string]any{}
	for _, object := range store.List() {
		accessor, err := meta.Accessor(object)
		if err != nil {
			return err
		}
		state[accessor.GetNamespace()+"/"+accessor.GetName()] = of(accessor)
	}
	line, err := json.Marshal(state)
	if err != nil {
		return err
	}
	_, err = fmt.Println(string(line))
	return err
}

// signal wakes whoever waits for a condition that something may have changed.
type signal struct {
	lock sync.Mutex
	cond *sync.Cond
}

func newSignal() *signal {
	s := &signal{}
	s.cond = sync.NewCond(&s.lock)
	return s
}

func (s *signal) send() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.cond.Broadcast()
}

func (s *signal) wait(holds func() bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for !holds() {
		s.cond.Wait()
	}
}
