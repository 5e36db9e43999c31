package main

import (
	"fmt"
	"hash/fnv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// digest sums up what the caches hold, independent of the order.
func (s *session) digest() event {
	var objects int
	var checksum, content uint64
	hasContent := false
	for i, informer := range s.informers {
		isContent := s.options.view != viewMetadata && s.options.resources[i] == pods
		hasContent = hasContent || isContent
		for _, object := range informer.GetStore().List() {
			meta := object.(metav1.Object)
			key := meta.GetNamespace() + "/" + meta.GetName()
			objects++
			checksum += sumOf(key + "\n" + string(meta.GetUID()) + "\n" + meta.GetResourceVersion())
			if isContent {
				text := key + "\n" + nodeName(object) + "\n"
				for _, image := range images(object) {
					text += image + "\n"
				}
				content += sumOf(text)
			}
		}
	}
	answer := event{"objects": objects, "checksum": fmt.Sprintf("%016x", checksum)}
	if hasContent {
		answer["content"] = fmt.Sprintf("%016x", content)
	}
	return answer
}

func sumOf(text string) uint64 {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(text))
	return hash.Sum64()
}
