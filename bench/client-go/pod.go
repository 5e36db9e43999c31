package main

import (
	"k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// The fields of a pod that the benchmarks read, in the views that have them.

func nodeName(pod any) string {
	switch pod := pod.(type) {
	case *v1.Pod:
		return pod.Spec.NodeName
	case *unstructured.Unstructured:
		return textAt(pod, "spec", "nodeName")
	}
	return ""
}

func podIP(pod any) string {
	switch pod := pod.(type) {
	case *v1.Pod:
		return pod.Status.PodIP
	case *unstructured.Unstructured:
		return textAt(pod, "status", "podIP")
	}
	return ""
}

func images(pod any) []string {
	var images []string
	switch pod := pod.(type) {
	case *v1.Pod:
		for _, container := range pod.Spec.Containers {
			images = append(images, container.Image)
		}
	case *unstructured.Unstructured:
		containers, _, _ := unstructured.NestedFieldNoCopy(pod.Object, "spec", "containers")
		items, _ := containers.([]any)
		for _, item := range items {
			container, _ := item.(map[string]any)
			image, _ := container["image"].(string)
			images = append(images, image)
		}
	}
	return images
}

func textAt(object *unstructured.Unstructured, path ...string) string {
	text, _, _ := unstructured.NestedString(object.Object, path...)
	return text
}

// indexBy returns no index value for an empty field.
func indexBy(value func(any) string) cache.IndexFunc {
	return func(pod any) ([]string, error) {
		if value := value(pod); value != "" {
			return []string{value}, nil
		}
		return nil, nil
	}
}
