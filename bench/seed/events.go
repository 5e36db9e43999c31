package main

import (
	"encoding/json"
	"log"
	"os"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// events is the file that gets a line for each event.
type events struct {
	sync.Mutex
	encoder *json.Encoder
}

// An event has the fields that the seed gives it.
type event struct {
	Meta      meta      `json:"meta"`
	Timestamp time.Time `json:"timestamp"`
}

type meta struct {
	Type string
	Kind string
	Obj  any
	Diff any
}

func newEvents(path string) (*events, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &events{encoder: json.NewEncoder(file)}, nil
}

func (e *events) handler(resource string) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { e.write("EventAdd", resource, object) },
		UpdateFunc: func(_, object any) { e.write("EventUpdate", resource, object) },
		DeleteFunc: func(object any) { e.write("EventDelete", resource, object) },
	}
}

func (e *events) write(kind, resource string, object any) {
	e.Lock()
	defer e.Unlock()
	line := event{Meta: meta{Type: kind, Kind: resource, Obj: object}, Timestamp: time.Now()}
	if err := e.encoder.Encode(line); err != nil {
		log.Fatal(err)
	}
}
