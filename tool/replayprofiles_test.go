package tool

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/edge/recording"
	"github.com/berth-scheduler/berth/sim/day"
	"github.com/berth-scheduler/berth/sim/replay"
)

// recordedOther is a directory with the record of a scheduler with the default profile: of a pod of its
// own, and of one that a scheduler called batch bound. change changes what the record says of itself.
func recordedOther(t *testing.T, change func(*recording.Header)) string {
	t.Helper()
	h, dir := headerOf(t, morning), filepath.Join(t.TempDir(), "record")
	o, err := replay.Options(&h)
	if err != nil {
		t.Fatal(err)
	}
	change(&h)
	r, err := recording.Start(recording.Options{Dir: dir, Limit: 1 << 30, Wait: true, Header: h, Logger: klog.Background()})
	if err != nil {
		t.Fatal(err)
	}
	c := day.NewCluster(machine.New(o), morning)
	c.Objects, c.Observe = recording.NewObjects(nil), r.Observe
	c.Set(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1"}, Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("4"), "pods": resource.MustParse("9")}}})
	pod := func(scheduler string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: scheduler, UID: types.UID(scheduler)}, Spec: v1.PodSpec{SchedulerName: scheduler, Containers: []v1.Container{{Name: "c", Image: "i"}}}}
	}
	c.Set(pod(v1.DefaultSchedulerName))
	c.Set(pod("batch"))
	c.Advance(morning.Add(time.Minute))
	bound := pod("batch")
	bound.Spec.NodeName = "n1"
	c.Set(bound)
	c.Advance(morning.Add(time.Hour))
	r.Close(context.Background())
	return dir
}

// configured is a file with a configuration that has profiles of the names.
func configured(t *testing.T, profiles ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), strings.Join(profiles, "-")+".yaml")
	text := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
	for _, name := range profiles {
		text += "- schedulerName: " + name + "\n"
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Both sides of a comparison decide on the same pods: those of the record's profiles and of either
// side's.
func TestCompareDecidesOnTheSamePods(t *testing.T) {
	dir := recordedOther(t, func(*recording.Header) {})
	both := configured(t, v1.DefaultSchedulerName, "batch")
	for _, files := range [][2]string{{"recorded", both}, {both, "recorded"}} {
		var c replay.Comparison
		status, out, errs := called("compare", files[0], files[1], "--record", dir, "-o", "json")
		if err := json.Unmarshal([]byte(out), &c); err != nil || status != 0 {
			t.Fatalf("exit status %d, %v: %s%s", status, err, out, errs)
		}
		if c.A.Arrived != 2 || c.B.Arrived != 2 || c.A.Placed+c.B.Placed != 3 || len(c.Notes) != 1 || !strings.HasSuffix(c.Notes[0], " serves batch: 1 pod stays without a node") {
			t.Errorf("%v: %d pods arrived under A and %d under B, %d and %d placed, notes %q", files, c.A.Arrived, c.B.Arrived, c.A.Placed, c.B.Placed, c.Notes)
		}
	}
}

// A record whose own configuration this tool cannot read is played with another one. Which profiles it had
// is not known then, and a note says so, once.
func TestReplayOfAnUnreadableConfiguration(t *testing.T) {
	dir := recordedOther(t, func(h *recording.Header) {
		h.Config = "apiVersion: kubescheduler.config.k8s.io/v9\nkind: KubeSchedulerConfiguration\n"
	})
	one := configured(t, v1.DefaultSchedulerName)
	const note = "berth: note: the names of the recorded profiles are not known, so only pods of the profiles that are tried are decided on: the record's configuration: "
	for _, call := range [][]string{{"replay", dir, "--config", one}, {"compare", one, one, "--record", dir}} {
		if status, out, errs := called(call...); status != 0 || !strings.HasPrefix(errs, note) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit status %d, %q, want the note %q\n%s", call[0], status, errs, note, out)
		}
	}
	for _, call := range [][]string{{"replay", dir, "--seed", "7"}, {"compare", "recorded", one, "--record", dir}} {
		if status, _, errs := called(call...); status != exitInvalid || !strings.Contains(errs, "the record's configuration: ") {
			t.Errorf("%s with the record's own: exit status %d, %q", call[0], status, errs)
		}
	}
}
