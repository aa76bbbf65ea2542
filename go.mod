module github.com/berth-scheduler/berth

go 1.26.0

require (
	github.com/spf13/cobra v1.10.2
	k8s.io/api v0.36.3
	k8s.io/apimachinery v0.36.3
	k8s.io/apiserver v0.36.3
	k8s.io/cli-runtime v0.36.3
	k8s.io/client-go v0.36.3
	k8s.io/component-base v0.36.3
	k8s.io/component-helpers v0.36.3
	k8s.io/dynamic-resource-allocation v0.36.3
	k8s.io/klog/v2 v2.140.0
	k8s.io/kube-scheduler v0.36.3
	sigs.k8s.io/yaml v1.6.0
	pgregory.net/rapid v1.3.0
	go.uber.org/goleak v1.3.0
)
