package main

import (
	"shared"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// digest sums up what the caches hold, independent of the order.
func (s *session) digest() event {
	var objects int
	var checksum, content shared.Checksum
	hasContent := false
	for i, informer := range s.informers {
		isContent := s.options.view != viewMetadata && s.options.resources[i] == pods
		hasContent = hasContent || isContent
		for _, object := range informer.GetStore().List() {
			meta := object.(metav1.Object)
			key := meta.GetNamespace() + "/" + meta.GetName()
			objects++
			checksum.Add(key + "\n" + string(meta.GetUID()) + "\n" + meta.GetResourceVersion())
			if isContent {
				text := key + "\n" + nodeName(object) + "\n"
				for _, image := range images(object) {
					text += image + "\n"
				}
				content.Add(text)
			}
		}
	}
	answer := event{"objects": objects, "checksum": checksum.String()}
	if hasContent {
		answer["content"] = content.String()
	}
	return answer
}
