// This program does what arriqaaq/kubediff ("the seed") does in its watch mode: it has a dynamic informer for each resource that is
// named, and handlers that write each event with the whole object. ../PROTOCOL.md defines the arguments and the lines.
//
// It is lighter than the seed on purpose. The seed writes each event twice, in many lines; here an event is one line of one
// file. The seed also tells of every object anew each minute; here only with --resync 1m.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"os"
	"runtime/debug"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	log.SetFlags(0)
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	kubeconfig := flag.String("kubeconfig", "", "where the server is")
	file := flag.String("events", "", "where events are written")
	resync := flag.Duration("resync", 0, "how often every object is told of anew")
	var resources []schema.GroupVersionResource
	flag.Func("resource", "GROUP/VERSION/PLURAL/KIND, \"core\" for the group without a name", func(value string) error {
		resource, err := parseResource(value)
		resources = append(resources, resource)
		return err
	})
	flag.Parse()
	watcher, err := newWatcher(*kubeconfig, *file, *resync, resources)
	if err != nil {
		log.Fatal(err)
	}
	if err := watcher.serve(os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func parseResource(value string) (schema.GroupVersionResource, error) {
	parts := strings.Split(value, "/")
	if len(parts) != 4 {
		return schema.GroupVersionResource{}, fmt.Errorf("want GROUP/VERSION/PLURAL/KIND")
	}
	group := parts[0]
	if group == "core" {
		group = ""
	}
	return schema.GroupVersionResource{Group: group, Version: parts[1], Resource: parts[2]}, nil
}

// watcher has an informer for each resource, whose handlers write to one file.
type watcher struct {
	informers []cache.SharedIndexInformer
	// Done when the initial list is in the caches and was written.
	synced []cache.DoneChecker
}

func newWatcher(kubeconfig, file string, resync time.Duration, resources []schema.GroupVersionResource) (*watcher, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	events, err := newEvents(file)
	if err != nil {
		return nil, err
	}
	w := &watcher{}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, resync)
	for _, resource := range resources {
		informer := factory.ForResource(resource).Informer()
		registration, err := informer.AddEventHandler(events.handler(resource.Resource))
		if err != nil {
			return nil, err
		}
		w.informers = append(w.informers, informer)
		w.synced = append(w.synced, informer.HasSyncedChecker(), registration.HasSyncedChecker())
	}
	return w, nil
}

// serve answers each line of commands with one line, until they end.
func (w *watcher) serve(commands io.Reader, answers io.Writer) error {
	encoder := json.NewEncoder(answers)
	if err := encoder.Encode(map[string]any{"event": "started", "version": "client-go " + clientVersion()}); err != nil {
		return err
	}
	lines := bufio.NewScanner(commands)
	for lines.Scan() {
		var answer map[string]any
		switch lines.Text() {
		case "start":
			answer = w.start()
		case "digest":
			answer = w.digest()
		default:
			answer = map[string]any{"event": "failed", "reason": fmt.Sprintf("the seed has no %q", lines.Text())}
		}
		if err := encoder.Encode(answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (w *watcher) start() map[string]any {
	begin := time.Now()
	for _, informer := range w.informers {
		go informer.Run(context.Background().Done())
	}
	cache.WaitFor(context.Background(), "", w.synced...)
	objects := 0
	for _, informer := range w.informers {
		objects += len(informer.GetStore().ListKeys())
	}
	return map[string]any{"event": "synced", "objects": objects, "wallSeconds": time.Since(begin).Seconds()}
}

// digest sums up what the caches hold, independent of the order.
func (w *watcher) digest() map[string]any {
	var objects int
	var checksum uint64
	for _, informer := range w.informers {
		for _, object := range informer.GetStore().List() {
			meta := object.(metav1.Object)
			hash := fnv.New64a()
			fmt.Fprintf(hash, "%s/%s\n%s\n%s", meta.GetNamespace(), meta.GetName(), meta.GetUID(), meta.GetResourceVersion())
			checksum += hash.Sum64()
			objects++
		}
	}
	return map[string]any{"event": "digest", "objects": objects, "checksum": fmt.Sprintf("%016x", checksum)}
}

// clientVersion returns the version of client-go in this build.
func clientVersion() string {
	info, _ := debug.ReadBuildInfo()
	if info != nil {
		for _, module := range info.Deps {
			if module.Path == "k8s.io/client-go" {
				return strings.TrimPrefix(module.Version, "v")
			}
		}
	}
	return "of unknown version"
}
