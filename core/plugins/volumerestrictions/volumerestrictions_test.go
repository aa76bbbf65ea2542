package volumerestrictions

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-scheduler/berth/core/framework"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/scheduler/plugintest"
)

func user(uid, namespace, claim string) *object.Pod {
	return &object.Pod{UID: types.UID("u-" + uid), Namespace: namespace, Volumes: []object.Volume{{Claimed: true, Claim: claim}}}
}

func claim(namespace, name string, mode v1.PersistentVolumeAccessMode) *object.PersistentVolumeClaim {
	return &object.PersistentVolumeClaim{Meta: object.Meta{Kind: object.PersistentVolumeClaims, Namespace: namespace, Name: name},
		Modes: []v1.PersistentVolumeAccessMode{mode}}
}

// TestOnePodAtATime: users of claims of that name elsewhere do not count, and
// of several users all have to go.
func TestOnePodAtATime(t *testing.T) {
	tb := plugintest.Table(&object.Node{Name: "a"}, &object.Node{Name: "b"})
	tb.Objects().Set(claim("ns", "c", v1.ReadWriteOncePod))
	tb.Objects().Set(claim("else", "c", v1.ReadWriteOncePod))
	pl, p := New(), user("new", "ns", "c")
	inUse := func() bool { return len(plugintest.Ask(t, pl, tb, p).Blocked) > 0 }
	key := func() string { return string(pl.Sign(nil, tb, p)) }
	free := key()
	tb.AddPod(user("1", "else", "c"), "a")
	if inUse() {
		t.Error("a claim of another namespace counts")
	}
	tb.AddPod(user("2", "ns", "c"), "a")
	tb.AddPod(user("3", "ns", "c"), "b")
	if !inUse() || key() == free {
		t.Error("the claim's users do not count")
	}
	in := &framework.Input{Table: tb, Pod: p, State: pl.PreFilter(tb, p).State}
	out := make([]framework.Verdict, 1)
	mark := tb.Checkpoint()
	tb.RemovePod("u-2")
	if pl.Filter(in, tb.All()[:1], out); out[0] != claimTaken {
		t.Error("with one of two users gone the claim is free")
	}
	tb.RemovePod("u-3")
	if pl.Filter(in, tb.All()[:1], out); out[0] != framework.Fits {
		t.Error("with all users gone the claim is taken")
	}
	tb.Undo(mark)
	tb.RemovePod("u-2")
	tb.RemoveNode("b")
	if inUse() {
		t.Error("a user on a node that is gone counts")
	}
}

// A pod is requeued when a user of its claim or its disk goes, and by no other pod.
func TestQueueingHints(t *testing.T) {
	disk := func(namespace, name string) *object.Pod {
		return &object.Pod{Namespace: namespace, Volumes: []object.Volume{{Disk: &object.Disk{Kind: object.AWSElasticBlockStore, Name: name}}}}
	}
	for _, c := range []struct {
		name     string
		rejected *object.Pod
		gone     *object.Pod
		want     bool
	}{
		{"the claim's user goes", user("1", "ns", "c"), user("2", "ns", "c"), true},
		{"the user of another", user("1", "ns", "c"), user("2", "ns", "d"), false},
		{"of one elsewhere", user("1", "ns", "c"), user("2", "else", "c"), false},
		{"the disk", disk("ns", "x"), disk("else", "x"), true},
		{"another disk", disk("ns", "x"), disk("ns", "y"), false},
	} {
		if got := freed(c.rejected, &framework.Event{OldPod: c.gone}); got != c.want {
			t.Errorf("%s: requeues %v", c.name, got)
		}
	}
}

// A disk keeps pods that may not share it off the nodes where it is.
func TestDisks(t *testing.T) {
	with := func(uid string, disks ...object.Disk) *object.Pod {
		p := &object.Pod{UID: types.UID(uid)}
		for i := range disks {
			p.Volumes = append(p.Volumes, object.Volume{Disk: &disks[i]})
		}
		return p
	}
	disk := func(name string, readOnly bool) object.Disk {
		return object.Disk{Kind: object.ISCSI, Name: name, ReadOnly: readOnly}
	}
	tb := plugintest.Table(&object.Node{Name: "a"}, &object.Node{Name: "b"}, &object.Node{Name: "c"})
	tb.AddPod(with("1", disk("x", false)), "a")
	tb.AddPod(with("2", disk("y", true)), "b")
	for _, c := range []struct {
		pod  *object.Pod
		want string
	}{
		{with("p", disk("x", false)), "a"},
		{with("p", disk("x", true)), "a"},
		{with("p", disk("y", true)), ""},
		{with("p", disk("z", false), disk("y", false)), "b"},
	} {
		blocked := ""
		for node, why := range plugintest.Ask(t, New(), tb, c.pod).Blocked { // one at most
			if why != "" {
				blocked += node
			}
		}
		if blocked != c.want {
			t.Errorf("%v: kept off %q, want %q", c.pod.Volumes[0].Disk, blocked, c.want)
		}
	}
}
