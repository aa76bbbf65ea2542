package resource

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// IsScalar reports whether the scheduler counts the resource by its name (upstream's
// ScalarResources): extended resources, huge pages, attachable volumes, and names with
// kubernetes.io/. CPU, memory and ephemeral storage are counted apart, and every other name
// is ignored, as in kube-scheduler.
func IsScalar(name v1.ResourceName) bool {
	s := string(name)
	return strings.HasPrefix(s, v1.ResourceHugePagesPrefix) ||
		strings.HasPrefix(s, v1.ResourceAttachableVolumesPrefix) ||
		strings.Contains(s, v1.ResourceDefaultNamespacePrefix) ||
		IsExtended(name)
}

// IsExtended reports whether the name is that of an extended resource: it has a prefix
// outside of kubernetes.io, and is valid as a quota's name, too.
func IsExtended(name v1.ResourceName) bool {
	s := string(name)
	if !strings.Contains(s, "/") || strings.Contains(s, v1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(s, v1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(v1.DefaultResourceRequestsPrefix+s)) == 0
}

// ByDevices reports whether a DeviceClass may stand for the resource: it is an extended
// resource, or names a class itself (deviceclass.resource.kubernetes.io/...).
func ByDevices(name v1.ResourceName) bool {
	return IsExtended(name) || strings.HasPrefix(string(name), resourcev1.ResourceDeviceClassPrefix)
}
