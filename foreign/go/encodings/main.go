// Reads all that a server has of the kinds that client-go has types for: as JSON, as protobuf, by lists, by watches and as
// metadata alone. Each must be the same. Prints one line for each resource.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const protobuf = runtime.ContentTypeProtobuf

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: encodings KUBECONFIG")
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	lists, err := client.ServerPreferredResources()
	if err != nil {
		return err
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") || !slices.Contains(resource.Verbs, "watch") {
				continue
			}
			if err := compare(ctx, config, version, resource); err != nil {
				return fmt.Errorf("%s of %s: %w", resource.Name, version, err)
			}
		}
	}
	return nil
}

func compare(ctx context.Context, config *rest.Config, version schema.GroupVersion, resource metav1.APIResource) error {
	one, err := metadataOnly(ctx, config, version, resource)
	if err != nil {
		return err
	}
	if !scheme.Scheme.Recognizes(version.WithKind(resource.Kind)) {
		fmt.Printf("%s %d as metadata\n", resource.Name, one)
		return nil
	}
	inJSON, err := list(ctx, config, version, resource, runtime.ContentTypeJSON)
	if err != nil {
		return err
	}
	inProtobuf, err := list(ctx, config, version, resource, protobuf)
	if err != nil {
		return err
	}
	watched, err := watched(ctx, config, version, resource)
	if err != nil {
		return err
	}
	if len(inJSON) != one || len(inJSON) != len(inProtobuf) || len(inJSON) != len(watched) {
		return fmt.Errorf("%d, %d, %d and %d objects", one, len(inJSON), len(inProtobuf), len(watched))
	}
	for at := range inJSON {
		for by, other := range map[string]runtime.Object{"a list": inProtobuf[at], "a watch": watched[at]} {
			// Only what stands alone says its kind.
			other.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
			if !equality.Semantic.DeepEqual(inJSON[at], other) {
				return fmt.Errorf("object %d is another by %s in protobuf:\n%#v\n%#v", at, by, inJSON[at], other)
			}
		}
	}
	fmt.Printf("%s %d\n", resource.Name, len(inJSON))
	return nil
}

// typed is a client that accepts nothing but one content type.
func typed(config *rest.Config, version schema.GroupVersion, contentType string) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.APIPath = "/apis"
	if version.Group == "" {
		config.APIPath = "/api"
	}
	config.GroupVersion = &version
	config.ContentType, config.AcceptContentTypes = contentType, contentType
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.RESTClientFor(config)
}

func list(ctx context.Context, config *rest.Config, version schema.GroupVersion, resource metav1.APIResource, contentType string) ([]runtime.Object, error) {
	client, err := typed(config, version, contentType)
	if err != nil {
		return nil, err
	}
	var sent string
	result := client.Get().Resource(resource.Name).Do(ctx).ContentType(&sent)
	list, err := result.Get()
	if err != nil {
		return nil, err
	}
	if sent != contentType {
		return nil, fmt.Errorf("a list came as %s", sent)
	}
	return meta.ExtractList(list)
}

// watched reads the list that a watch begins with.
func watched(ctx context.Context, config *rest.Config, version schema.GroupVersion, resource metav1.APIResource) ([]runtime.Object, error) {
	client, err := typed(config, version, protobuf)
	if err != nil {
		return nil, err
	}
	initial, timeout := true, int64(30)
	options := metav1.ListOptions{
		Watch: true, SendInitialEvents: &initial, AllowWatchBookmarks: true, TimeoutSeconds: &timeout,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}
	stream, err := client.Get().Resource(resource.Name).VersionedParams(&options, scheme.ParameterCodec).Watch(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Stop()
	var objects []runtime.Object
	for event := range stream.ResultChan() {
		switch event.Type {
		case watch.Added:
			objects = append(objects, event.Object)
		case watch.Bookmark:
			return objects, nil
		default:
			return nil, fmt.Errorf("%s: %#v", event.Type, event.Object)
		}
	}
	return nil, errors.New("the watch ended before its first content did")
}

// metadataOnly counts the objects as the client for metadata lists them, which prefers protobuf.
func metadataOnly(ctx context.Context, config *rest.Config, version schema.GroupVersion, resource metav1.APIResource) (int, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return 0, err
	}
	list, err := client.Resource(version.WithResource(resource.Name)).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	for _, object := range list.Items {
		if object.Name == "" || object.ResourceVersion == "" {
			return 0, fmt.Errorf("metadata without a name or a version: %#v", object)
		}
	}
	return len(list.Items), nil
}
