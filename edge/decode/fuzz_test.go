package decode

import (
	"encoding/json"
	"reflect"
	"regexp"
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// endless quantities have an exponent that keeps Kubernetes' parser busy for hours: a
// tiny one, or a huge one of a long number. The API server never sends any: it parses
// what it stores.
var endless = regexp.MustCompile(`[eE]-[0-9]{3}|[0-9.]{18}[eE][+]?[0-9]{4}`)

// Whatever an object of any kind says, it is decoded, the API object stays as it
// was (others read it too), and a second look sees the same.
func FuzzKinds(f *testing.F) {
	for i := range Kinds {
		f.Add(uint8(i), []byte(`{"metadata":{"name":"a","namespace":"b","uid":"c","labels":{"k":"v"}}}`))
		f.Add(uint8(i), []byte(`{"spec":null,"status":null}`))
	}
	for kind, text := range map[string]string{ // any order
		"Node":                  `{"spec":{"taints":[{"key":"k","effect":"NoExecute"}]},"status":{"allocatable":{"cpu":"1e999999999","pods":"-3","x/y":"1n"},"images":[{"names":["a:b@c",""],"sizeBytes":-1}]}}`,
		"Pod":                   `{"spec":{"containers":[{"name":"c","image":"a/b","ports":[{"hostPort":80}],"resources":{"requests":{"cpu":"-1","memory":"1e30"},"limits":{"cpu":"1"},"claims":[{"name":"r"}]}}],"initContainers":[{"restartPolicy":"Always"}],"overhead":{"cpu":"9e18"},"volumes":[{"persistentVolumeClaim":{"claimName":"x"}},{"ephemeral":{}},{"iscsi":{"lun":1}}],"tolerations":[{"operator":"Gt","value":"x"}],"topologySpreadConstraints":[{"maxSkew":0,"topologyKey":"","labelSelector":{"matchExpressions":[{"key":"a b","operator":"In"}]},"matchLabelKeys":["z"]}],"affinity":{"podAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":-5,"podAffinityTerm":{"namespaceSelector":{}}}]},"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{}]}}},"resourceClaims":[{"name":"r","resourceClaimTemplateName":"t"}],"schedulingGates":[{"name":"g"}]},"status":{"nominatedNodeName":"n","conditions":[{"type":"PodScheduled","status":"False"}]}}`,
		"PodDisruptionBudget":   `{"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"Near"}]}},"status":{"disruptionsAllowed":-9,"disruptedPods":{"":null}}}`,
		"PersistentVolume":      `{"spec":{"capacity":{"storage":"-1"},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchFields":[{"key":"x"}]}]}},"claimRef":{}}}`,
		"PersistentVolumeClaim": `{"metadata":{"annotations":{"volume.kubernetes.io/selected-node":"n","pv.kubernetes.io/bind-completed":""}},"spec":{"selector":{"matchExpressions":[{}]},"resources":{"requests":{"storage":"x"}}}}`,
		"CSINode":               `{"spec":{"drivers":[{"name":"d","allocatable":{"count":-1}},{"name":"d"}]}}`,
		"CSIStorageCapacity":    `{"nodeTopology":{"matchExpressions":[{"key":"","operator":"In"}]},"capacity":"-1","maximumVolumeSize":"1e20"}`,
		"StorageClass":          `{"volumeBindingMode":"x","allowedTopologies":[{"matchLabelExpressions":[{"key":"k"}]}]}`,
		"ResourceSlice":         `{"spec":{"driver":"d","pool":{"name":"p","generation":-1},"nodeSelector":{"nodeSelectorTerms":[null,{}]},"devices":[{"name":"x","attributes":{"a":{},"b":{"version":"x"}},"capacity":{"c":{"value":"1"}}}],"sharedCounters":[{}]}}`,
		"ResourceClaim":         `{"spec":{"devices":{"requests":[{"name":"r"},{"name":"r","exactly":{"count":-1,"selectors":[{"cel":{"expression":"("}}]}}],"constraints":[{"matchAttribute":"x"}]}},"status":{"allocation":{"devices":{"results":[{}]}},"reservedFor":[{}]}}`,
		"DeviceClass":           `{"spec":{"selectors":[{"cel":null}],"extendedResourceName":"a"}}`,
		"Service":               `{"spec":{"selector":{"":""}}}`,
		"StatefulSet":           `{"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"Exists","values":["b"]}]}}}`,
		"PriorityClass":         `{"value":2147483647,"globalDefault":true,"preemptionPolicy":"x"}`,
	} {
		f.Add(index(f, kind), []byte(text))
	}
	f.Fuzz(func(t *testing.T, kind uint8, text []byte) {
		o := Kinds[int(kind)%len(Kinds)].New()
		if endless.Match(text) || json.Unmarshal(text, o) != nil {
			return
		}
		before := o.(runtime.Object).DeepCopyObject()
		first, second := decoded(o), decoded(o)
		if !reflect.DeepEqual(any(o), any(before)) {
			t.Errorf("%T was changed", o)
		}
		if !reflect.DeepEqual(first, second) {
			t.Errorf("%v, then %v", first, second)
		}
	})
}

func index(f *testing.F, kind string) uint8 {
	for i := range Kinds {
		if Kinds[i].Name == kind {
			return uint8(i)
		}
	}
	f.Fatalf("no kind %s", kind)
	return 0
}

// decoded is what the watches make of an object, its checks and defaults
// included.
func decoded(o metav1.Object) any {
	switch o := o.(type) {
	case *v1.Node:
		CheckNode(o)
		DefaultNode(o.DeepCopy())
		return Node(o)
	case *v1.Pod:
		CheckPod(o)
		DefaultPod(o.DeepCopy())
		return Pod(o)
	case *v1.Namespace:
		return Namespace(o)
	case *policyv1.PodDisruptionBudget:
		return Budget(o)
	}
	if owner := SelectorOwner(o); owner != nil {
		return owner
	}
	return Object(o)
}
