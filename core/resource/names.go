package resource

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// IsScalar reports whether a scheduler counts the resource by its name: an
// extended resource, huge pages, attachable volumes, or one of Kubernetes'
// own with a prefix. CPU, memory and ephemeral storage are counted apart, and
// every other name is ignored, as in kube-scheduler.
func IsScalar(name v1.ResourceName) bool {
	s := string(name)
	return strings.HasPrefix(s, v1.ResourceHugePagesPrefix) ||
		strings.HasPrefix(s, v1.ResourceAttachableVolumesPrefix) ||
		strings.Contains(s, v1.ResourceDefaultNamespacePrefix) ||
		IsExtended(name)
}

// IsExtended reports whether the name is an extended resource: outside kubernetes.io,
// with a prefix, and valid as a quota's name too.
func IsExtended(name v1.ResourceName) bool {
	s := string(name)
	if !strings.Contains(s, "/") || strings.Contains(s, v1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(s, v1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(v1.DefaultResourceRequestsPrefix+s)) == 0
}

// ByDevices reports whether a device class can stand for the resource: by the name in its
// spec, or by its own name after a prefix.
func ByDevices(name v1.ResourceName) bool {
	return IsExtended(name) || strings.HasPrefix(string(name), resourcev1.ResourceDeviceClassPrefix)
}
