package why

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/berth-scheduler/berth/edge/fix"
)

// templateText is the patch of a pod template at a path, and kubectl's flag for its
// form. Admission adds to pods what templates lack, so positions in a pod's lists say
// nothing about the template: containers are named. Where that cannot be done,
// positions are used all the same.
func (f *facts) templateText(patch []fix.Op, at string) (form, text string) {
	if merge, err := f.templatePatch(patch, at); err == nil {
		return "", quoted(merge)
	}
	return "--type=json ", patchText(patch, at)
}

// templatePatch is the strategic merge patch of what holds the template.
func (f *facts) templatePatch(ops []fix.Op, at string) ([]byte, error) {
	before := f.cluster.Set.Written("Pod", f.api.Namespace, f.api.Name)
	if before == nil {
		var err error
		if before, err = json.Marshal(f.api); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(ops)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return nil, err
	}
	after, err := patch.Apply(before)
	if err != nil {
		return nil, err
	}
	if before, err = withoutAdmission(before); err != nil {
		return nil, err
	}
	if after, err = withoutAdmission(after); err != nil {
		return nil, err
	}
	merge, err := strategicpatch.CreateTwoWayMergePatch(before, after, v1.Pod{})
	if err != nil {
		return nil, err
	}
	var pod map[string]any
	if err := json.Unmarshal(merge, &pod); err != nil {
		return nil, err
	}
	dropOrder(pod)
	if spread := f.api.Spec.TopologySpreadConstraints; sameKeyTwice(spread) && strings.Contains(string(text), "/spec/topologySpreadConstraints") {
		return nil, fmt.Errorf("several topologySpreadConstraints have the same topologyKey, and a strategic merge patch cannot tell them apart")
	}
	var whole any = pod
	for _, part := range slices.Backward(strings.Split(at, "/")[1:]) {
		whole = map[string]any{part: whole}
	}
	return json.Marshal(whole)
}

// withoutAdmission is the pod without the tolerations that admission gives every pod.
func withoutAdmission(text []byte) ([]byte, error) {
	var pod map[string]any
	if err := json.Unmarshal(text, &pod); err != nil {
		return nil, err
	}
	spec, _ := pod["spec"].(map[string]any)
	if list, is := spec["tolerations"].([]any); is {
		if list = slices.DeleteFunc(list, ofAdmission); len(list) == 0 {
			delete(spec, "tolerations")
		} else {
			spec["tolerations"] = list
		}
	}
	return json.Marshal(pod)
}

// ofAdmission tells a toleration that admission gives every pod.
func ofAdmission(toleration any) bool {
	t, _ := toleration.(map[string]any)
	return (t["key"] == v1.TaintNodeNotReady || t["key"] == v1.TaintNodeUnreachable) &&
		t["operator"] == string(v1.TolerationOpExists) && t["effect"] == string(v1.TaintEffectNoExecute) && t["tolerationSeconds"] == 300.
}

// dropOrder drops the order of lists, which would name what admission added.
func dropOrder(in any) {
	switch in := in.(type) {
	case map[string]any:
		for key, value := range in { // any order: each member by itself
			if strings.HasPrefix(key, "$setElementOrder/") {
				delete(in, key)
				continue
			}
			dropOrder(value)
		}
	case []any:
		for _, value := range in {
			dropOrder(value)
		}
	}
}

func sameKeyTwice(constraints []v1.TopologySpreadConstraint) bool {
	seen := map[string]bool{}
	for i := range constraints {
		if seen[constraints[i].TopologyKey] {
			return true
		}
		seen[constraints[i].TopologyKey] = true
	}
	return false
}
