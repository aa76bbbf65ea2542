package recording

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"strings"
	"testing"

	baseversion "k8s.io/component-base/version"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/queue"
)

func resourceName(r framework.EventResource) string {
	return strings.TrimSuffix(queue.Label(r, framework.Add), "Add")
}

// resourceNames and actionNames list the names of resources and actions of events by their
// numbers.
func resourceNames() (names []string) {
	for r := range framework.EventResource(framework.NumEventResources) {
		names = append(names, fmt.Sprint(r, " ", resourceName(r)))
	}
	return names
}

func actionNames() (names []string) {
	for bit := range bits.Len32(uint32(framework.UpdateNodePreemptionPolicy)) {
		names = append(names, fmt.Sprint(bit, " ", strings.TrimPrefix(queue.Label(framework.AssignedPod, 1<<bit), "AssignedPod")))
	}
	return names
}

// The numbers of events are those that format.md gives. Whoever changes one raises Version,
// and translates the old number where an older record is read.
func TestEventsHaveTheNumbersOfTheFormat(t *testing.T) {
	text, err := os.ReadFile("format.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Resources of events: " + strings.Join(resourceNames(), ", ") + ".\n",
		"Actions by their bits: " + strings.Join(actionNames(), ", ") + ".\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("format.md does not say\n%s", want)
		}
	}
}

// A record that Berth wrote on Kubernetes 1.36 with a pod in flight tells of the same events
// here: 1.37 numbers them otherwise.
func TestEventsOfOlderRecords(t *testing.T) {
	entries, _, err := all("testdata/1.36/inflight")
	if err != nil {
		t.Fatal(err)
	}
	if h := entries[0].Begin; h.Version != 3 || h.Kubernetes != "1.36" || !strings.Contains(h.Origin(), "1.36") {
		t.Errorf("the header is %+v, the origin %q", h.Header, h.Origin())
	}
	at := slices.IndexFunc(entries, func(e *Entry) bool { return e.Snapshot != nil })
	q := entries[at].Snapshot.Queue
	var got []string
	for _, e := range q.Events.Last {
		got = append(got, fmt.Sprintf("%s %s", resourceName(e.Resource), labels(e.ActionType)))
	}
	for _, o := range q.Events.Old {
		got = append(got, fmt.Sprintf("%d %s", o.Number, queue.Label(o.Resource, 1<<o.Bit)))
	}
	got = append(got, labels(q.Entries[0].Changes))
	want := []string{
		"AssignedPod UpdatePodScaleDown Update",
		"UnscheduledPod Add",
		"Node UpdateNodeTaint UpdateNodeDeclaredFeature",
		"Namespace UpdateNamespaceLabel",
		"SelectorOwner UpdateSelector",
		"* All",
		"PersistentVolumeClaim Update",
		"scheduling.k8s.io/PodGroup Delete",
		"20 UnscheduledPodAdd",
		"21 NodeUpdateNodeAllocatable",
		"22 *31",
		"23 NamespaceUpdateNamespaceLabel",
		"24 scheduling.k8s.io/PodGroupUpdate",
		"UpdatePodLabel UpdatePodScaleDown UpdatePodToleration Update",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// labels names the actions.
func labels(a framework.ActionType) string {
	if a == framework.All {
		return "All"
	}
	var names []string
	for ; a != 0; a &= a - 1 {
		names = append(names, strings.TrimPrefix(queue.Label(framework.AssignedPod, a&-a), "AssignedPod"))
	}
	return strings.Join(names, " ")
}

// PodGroups have other fields since 1.37. A record that has one of 1.36 is refused, with the
// file, who wrote it and what to do.
func TestPodGroupsOfOlderRecords(t *testing.T) {
	_, _, err := all("testdata/1.36/podgroup")
	want := "testdata/1.36/podgroup/0000000001.berthrecord: a PodGroup of scheduling.k8s.io/v1alpha2 cannot be read any more: " +
		"the record (version 3 of the format) is of berth v0.36.3, which follows Kubernetes 1.36; this berth follows " + baseversion.DefaultKubeBinaryVersion + ": use the berth that wrote it"
	if !errors.Is(err, errOldPodGroup) || err.Error() != want {
		t.Errorf("error\n%v\nwant\n%s", err, want)
	}
}
