package recording

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/berth-scheduler/berth/core/match"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/decode"
)

// longValue is valid, and its parts are so many that their hashes are not.
const longValue = "gke-shop-default-pool-west-4d2a-x9k7"

// What stands for the value of a label is valid if the value is, and stands for no other.
func TestRedactedValuesStayAsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := NewNames([]byte("key"))
		draw := rapid.StringMatching(`[a-c1\-_. !+]{0,12}|[a-c1\-_]{40,66}`)
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		if is := n.value(a); validValue(is) != validValue(a) {
			t.Fatalf("%q is valid: %t; so is %q: %t", a, validValue(a), is, validValue(is))
		}
		if (n.value(a) == n.value(b)) != (a == b) {
			t.Fatalf("%q becomes %q, %q becomes %q", a, n.value(a), b, n.value(b))
		}
	})
}

// Node affinity selects the same nodes in a redacted record: by values that are long,
// empty, repeated, numbers or not valid, and by the name of the node.
func TestRedactedAffinitySelectsTheSame(t *testing.T) {
	values := []string{longValue, "ssd", "", "8", "08", "not valid", "-", strings.Repeat("a", 64)}
	for _, op := range []v1.NodeSelectorOperator{v1.NodeSelectorOpIn, v1.NodeSelectorOpNotIn, v1.NodeSelectorOpGt, v1.NodeSelectorOpLt} {
		for _, label := range values {
			for _, wanted := range values {
				list := []string{wanted}
				if op == v1.NodeSelectorOpIn {
					list = []string{wanted, "hdd", "hdd"}
				}
				r := v1.NodeSelectorRequirement{Key: "disk", Operator: op, Values: list}
				selectsTheSame(t, label, v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{r}})
			}
		}
	}
	byName := v1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{longValue}}
	selectsTheSame(t, "ssd", v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{byName}})
}

// selectsTheSame checks what the term says of a node with the label disk.
func selectsTheSame(t *testing.T, label string, term v1.NodeSelectorTerm) {
	t.Helper()
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: longValue, Labels: map[string]string{"disk": label}}}
	pod := &v1.Pod{Spec: v1.PodSpec{Affinity: &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}}}}}}
	selects := func() bool {
		s := match.NewNodeSelector(nil, pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		return s.Matches(match.Subject{Name: node.Name, Labels: node.Labels})
	}
	was, n := selects(), NewNames([]byte("key"))
	n.redact(node)
	n.redact(pod)
	if selects() != was {
		t.Errorf("a node with disk=%q, %+v: selected is %t; redacted it is %t", label, term, was, !was)
	}
}

// A volume in several zones is in the zones that its nodes are labelled with.
func TestRedactedZonesAreThoseOfNodes(t *testing.T) {
	n := NewNames([]byte("key"))
	zones := []string{"us-east1-a", longValue}
	v := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1.LabelTopologyZone: strings.Join(zones, "__")}}}
	n.redact(v)
	for i, zone := range strings.Split(v.Labels[v1.LabelTopologyZone], "__") {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1.LabelTopologyZone: zones[i]}}}
		if n.redact(node); node.Labels[v1.LabelTopologyZone] != zone {
			t.Errorf("%s: the volume is in %s, the node in %s", zones[i], zone, node.Labels[v1.LabelTopologyZone])
		}
	}
}

// A redacted PodGroup of scheduling.x-k8s.io and the labels of its pods have the same new
// name, also if a label's value may not be as long. The group keeps its minimum, what it needs free, its phase and its
// numbers, and nothing else of its spec and status.
func TestRedactedCoschedulingGroup(t *testing.T) {
	for _, name := range []string{"secret", "secret-a-b-c-d-e-f"} { // what stands for the second is no value of a label
		testRedactedCoschedulingGroup(t, name)
	}
}

func testRedactedCoschedulingGroup(t *testing.T, name string) {
	n := NewNames([]byte("key"))
	g := &decode.PodGroup{}
	if err := g.Unmarshal([]byte(`{"metadata":{"name":"` + name + `","namespace":"secret","annotations":{"berth.dev/required-topology":"example.com/rack","secret":"secret"}},"spec":{"minMember":3,"minResources":{"cpu":"1500m","memory":"secret"},"scheduleTimeoutSeconds":"secret"},
		"status":{"phase":"Running","occupiedBy":"secret","running":2,"succeeded":"secret","failed":1}}`)); err != nil {
		t.Fatal(err)
	}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "secret", Labels: map[string]string{object.PodGroupLabel: name}}}
	n.Redact(g)
	n.redact(pod)
	if key := decode.Object(g).(*object.PodGroup).Required; key != "example.com/rack" {
		t.Errorf("the required level is %q", key)
	}
	text, err := g.Marshal()
	if err != nil || strings.Contains(string(text), "secret") || string(g.Spec.MinMember) != "3" || !strings.Contains(string(g.Spec.MinResources), `"cpu":"1500m"`) || string(g.Status.Phase) != `"Running"` || string(g.Status.Running) != "2" || string(g.Status.Failed) != "1" {
		t.Errorf("%s, %v", text, err)
	}
	if g.Name != pod.Labels[object.PodGroupLabel] || g.Namespace != pod.Namespace {
		t.Errorf("the group is %s/%s, its pod is in %s/%s", g.Namespace, g.Name, pod.Namespace, pod.Labels[object.PodGroupLabel])
	}
}
