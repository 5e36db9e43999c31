package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

type view string

const (
	viewTyped    view = "typed"
	viewDynamic  view = "dynamic"
	viewMetadata view = "metadata"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

type options struct {
	kubeconfig        string
	view              view
	resources         []schema.GroupVersionResource
	subscriptions     int
	dropManagedFields bool
	index             bool
	reconcile         bool
}

// parseArguments exits with code 2 if it does not know an argument.
func parseArguments(arguments []string) options {
	options := options{view: viewTyped}
	flags := flag.NewFlagSet("client-go", flag.ExitOnError)
	flags.StringVar(&options.kubeconfig, "kubeconfig", "", "where the server is")
	flags.Func("view", "typed, dynamic or metadata", func(value string) error {
		options.view = view(value)
		switch options.view {
		case viewTyped, viewDynamic, viewMetadata:
			return nil
		}
		return fmt.Errorf("no such view")
	})
	flags.Func("resource", "GROUP/VERSION/PLURAL/KIND, \"core\" for the group without a name", func(value string) error {
		resource, err := parseResource(value)
		options.resources = append(options.resources, resource)
		return err
	})
	flags.IntVar(&options.subscriptions, "subscriptions", 0, "so many handlers")
	flags.BoolVar(&options.dropManagedFields, "drop-managed-fields", false, "remove them before an object is kept")
	flags.BoolVar(&options.index, "index", false, "indexes by node and by IP from the start on")
	flags.BoolVar(&options.reconcile, "reconcile", false, "a controller of the pods, in place of handlers")
	_ = flags.Parse(arguments)

	if len(options.resources) == 0 {
		options.resources = append(options.resources, pods)
	}
	if flags.NArg() > 0 {
		refuse("there is an argument too many")
	}
	if options.view == viewTyped && (len(options.resources) != 1 || options.resources[0] != pods) {
		refuse("the typed view is for pods only")
	}
	if options.reconcile && (options.view != viewTyped || options.subscriptions > 0) {
		refuse("the controller reads typed pods, and is the only handler")
	}
	if options.view == viewMetadata && options.index {
		refuse("metadata has neither node nor IP to index")
	}
	return options
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

func refuse(reason string) {
	fmt.Fprintln(os.Stderr, reason)
	os.Exit(2)
}
