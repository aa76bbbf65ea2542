package kube

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
)

// ofALaterMinor are objects of an API server that knows more fields: each JSON object has one.
var ofALaterMinor = map[string]string{
	"pods": `{"kind":"Pod","apiVersion":"v1","new":1,"metadata":{"namespace":"ns","name":"p","uid":"uid-1","new":1},
		"spec":{"new":1,"containers":[{"name":"c","new":1}]},
		"status":{"new":1,"conditions":[{"type":"PodScheduled","status":"False","new":1},{"type":"Later","status":"True","new":1}],
			"extendedResourceClaimStatus":{"resourceClaimName":"old","requestMappings":[],"new":1},
			"nodeAllocatableResourceClaimStatuses":[{"resourceClaimName":"other","new":1}]}}`,
	"resourceclaims": `{"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1","new":1,
		"metadata":{"namespace":"ns","name":"c","uid":"uid-c","resourceVersion":"1","finalizers":["g"],"new":1},
		"spec":{"new":1,"devices":{"new":1,"requests":[{"name":"r","new":1,"exactly":{"deviceClassName":"d","new":1}}]}},
		"status":{"new":1,"allocation":{"new":1,"devices":{"new":1,"results":[{"request":"r","driver":"d","pool":"p","device":"x","new":1}]}},
			"reservedFor":[{"resource":"pods","name":"q","uid":"uid-2","new":1}],"devices":[{"driver":"d","pool":"p","device":"x","new":1}]}}`,
	"persistentvolumes": `{"kind":"PersistentVolume","apiVersion":"v1","new":1,
		"metadata":{"name":"v","uid":"uid-v","resourceVersion":"1","annotations":{"new":"1"},"new":1},"spec":{"new":1,"claimRef":{"name":"c","new":1}},"status":{"new":1}}`,
	"persistentvolumeclaims": `{"kind":"PersistentVolumeClaim","apiVersion":"v1","new":1,
		"metadata":{"namespace":"ns","name":"c","uid":"uid-c","resourceVersion":"1","annotations":{"new":"1"},"new":1},"spec":{"new":1},"status":{"new":1}}`,
	"podgroups": `{"kind":"PodGroup","apiVersion":"scheduling.k8s.io/v1beta1","new":1,"metadata":{"namespace":"ns","name":"g","uid":"uid-g","new":1},
		"spec":{"new":1},"status":{"new":1,"conditions":[{"type":"PodGroupInitiallyScheduled","status":"False","new":1}]}}`,
}

// newerServer is an API server of a later minor. It applies patches to its objects.
type newerServer struct {
	mu      sync.Mutex
	objects map[string]string // by resource
	methods []string
	served  chan bool // after each request
}

var patchedTypes = map[string]any{"pods": v1.Pod{}, "resourceclaims": resourcev1.ResourceClaim{}, "podgroups": schedulingv1beta1.PodGroup{}}

// serve applies the patch in body to the object of the path's resource, and responds with the
// result. A request of another kind gets the object as it is.
func (s *newerServer) serve(w http.ResponseWriter, r *http.Request, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.served <- true }()
	parts := strings.Split(r.URL.Path, "/")
	resource := parts[slices.IndexFunc(parts, func(p string) bool { return ofALaterMinor[p] != "" })]
	s.methods = append(s.methods, r.Method+" "+path.Base(r.URL.Path))
	var out []byte
	var err error
	switch r.Header.Get("Content-Type") {
	case string(types.StrategicMergePatchType):
		out, err = strategicpatch.StrategicMergePatch([]byte(s.objects[resource]), []byte(body), patchedTypes[resource])
	case string(types.MergePatchType):
		out, err = jsonpatch.MergePatch([]byte(s.objects[resource]), []byte(body))
	default:
		out = []byte(s.objects[resource])
	}
	if err != nil {
		answer(w, 422, nil)
		return
	}
	s.objects[resource] = string(out)
	answer(w, 200, json.RawMessage(out))
}

// newFields lists the places of the field new in the object.
func newFields(t *testing.T, text string) (places []string) {
	t.Helper()
	var of func(at string, v any)
	of = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, value := range v { // any order: sorted below
				if name == "new" {
					places = append(places, at)
				}
				of(at+"."+name, value)
			}
		case []any:
			for i, value := range v {
				key := fmt.Sprint(i)
				if fields, ok := value.(map[string]any); ok {
					for _, by := range []string{"type", "uid", "name", "device", "resourceClaimName"} {
						if s, ok := fields[by].(string); ok {
							key = s
							break
						}
					}
				}
				of(at+"."+key, value)
			}
		}
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	of("", v)
	slices.Sort(places)
	return places
}

// What Berth writes changes only what it is about: fields that a later minor of Kubernetes
// brought stay, at any depth.
func TestFieldsOfALaterMinorAreKept(t *testing.T) {
	claim := object.Meta{Kind: object.ResourceClaims, Namespace: "ns", Name: "c", UID: "uid-c", Version: "1"}
	pod := object.Meta{Kind: object.Pods, Namespace: "ns", Name: "p", UID: "uid-1"}
	status := func(o object.Meta, patch map[string]any) framework.Write {
		return framework.Write{Object: o, Strategic: true, Subresource: "status", Patch: map[string]any{"status": patch}}
	}
	volume := volumeWrite()
	volume.Patch["metadata"] = map[string]any{"annotations": map[string]any{"pv.kubernetes.io/bound-by-controller": "yes"}}
	release := framework.Write{Object: claim, Subresource: "status", Patch: map[string]any{"status": map[string]any{"allocation": nil, "reservedFor": nil, "devices": nil}}}
	tests := map[string]struct {
		effect   machine.Effect
		resource string
		changed  string // part of what is written then
		emptied  []string
	}{
		"condition": {machine.PatchStatus{Pod: testPod("p"), Condition: &object.Condition{Status: "False", Reason: "Unschedulable", Message: "no room"}, Nominated: new(string)}, "pods", "no room", nil},
		"victim":    {machine.Evict{Victim: testPod("p"), Preemptor: testPod("q"), Node: "n"}, "pods", "DisruptionTarget", nil},
		"binding":   {machine.Bind{Pod: testPod("p"), Node: "n"}, "pods", "", nil},
		"claim":     {machine.Write{Pod: testPod("p"), Writes: deviceWrites()}, "resourceclaims", `"uid":"uid-1"`, nil},
		"consumer": {machine.Write{Pod: testPod("p"), Writes: []framework.Write{status(claim, map[string]any{"reservedFor": []any{map[string]any{"$patch": "delete", "uid": "uid-2"}}})}},
			"resourceclaims", "", []string{".status.reservedFor.uid-2"}},
		"release": {machine.Write{Pod: testPod("p"), Writes: []framework.Write{release}}, "resourceclaims", "",
			[]string{".status.allocation", ".status.devices", ".status.reservedFor"}},
		"finalizer": {machine.Write{Pod: testPod("p"), Writes: []framework.Write{{Object: claim, Strategic: true,
			Patch: map[string]any{"metadata": map[string]any{"$deleteFromPrimitiveList/finalizers": []string{"g"}}}}}}, "resourceclaims", "", nil},
		"extended resources": {machine.Write{Pod: testPod("p"), Writes: []framework.Write{status(pod, map[string]any{
			"extendedResourceClaimStatus": map[string]any{"resourceClaimName": "made", "requestMappings": []any{}}})}}, "pods", "made", nil},
		"devices of a node": {machine.Write{Pod: testPod("p"), Writes: []framework.Write{status(pod, map[string]any{
			"nodeAllocatableResourceClaimStatuses": []any{map[string]any{"resourceClaimName": "mine"}}})}}, "pods", "mine", nil},
		"volume": {machine.Write{Pod: testPod("p"), Writes: []framework.Write{volume}}, "persistentvolumes", "bound-by-controller", nil},
		"volume claim": {machine.Write{Pod: testPod("p"), Writes: []framework.Write{{Object: object.Meta{Kind: object.PersistentVolumeClaims, Namespace: "ns", Name: "c", UID: "uid-c", Version: "1"},
			Patch: map[string]any{"metadata": map[string]any{"annotations": map[string]any{"volume.kubernetes.io/selected-node": "n"}}}}}}, "persistentvolumeclaims", "selected-node", nil},
		"pod group": {machine.PatchGroupStatus{Group: &object.PodGroup{Meta: object.Meta{Kind: object.PodGroups, Namespace: "ns", Name: "g", UID: "uid-g"}},
			Condition: object.GroupCondition{Status: "True", Reason: "Scheduled", Message: "all"}}, "podgroups", "Scheduled", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &newerServer{objects: map[string]string{tt.resource: ofALaterMinor[tt.resource]}, served: make(chan bool, 9)}
			h, outcomes := executorOn(t, newWire(t, s.serve).config(), always)
			h.Do(tt.effect)
			switch tt.effect.(type) {
			case machine.PatchStatus, machine.PatchGroupStatus:
				<-s.served
			default:
				<-outcomes
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.methods) == 0 || slices.ContainsFunc(s.methods, func(m string) bool { return strings.HasPrefix(m, http.MethodPut) }) {
				t.Errorf("requests %q", s.methods)
			}
			after := s.objects[tt.resource]
			if !strings.Contains(after, tt.changed) {
				t.Errorf("nothing is written: %s", after)
			}
			kept := newFields(t, after)
			for _, place := range newFields(t, ofALaterMinor[tt.resource]) {
				emptied := slices.ContainsFunc(tt.emptied, func(e string) bool { return strings.HasPrefix(place, e) })
				if slices.Contains(kept, place) == emptied {
					t.Errorf("the new field at %q: kept %v, in\n%s", place, !emptied, after)
				}
			}
		})
	}
}
