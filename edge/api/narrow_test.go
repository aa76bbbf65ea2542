package api

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/berth-scheduler/berth/core/decision"
	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/edge/access"
	"github.com/berth-scheduler/berth/edge/decode"
	"github.com/berth-scheduler/berth/edge/loop"
	"github.com/berth-scheduler/berth/edge/records"
)

// lists may list the pods of some namespaces, and nothing else.
type lists map[string]bool

func (l lists) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.IsResourceRequest() && a.GetVerb() == "list" && l[a.GetNamespace()] {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func readerOf(may lists, narrow bool) *access.Reader {
	return access.New(&user.DefaultInfo{Name: "ann"}, authorizer.AuthorizerFunc(may.Authorize), narrow)
}

// pressed is a cluster in which shop/vip preempts a pod of another namespace, for which
// shop/big finds no room.
func pressed(t *testing.T) *fixture {
	f := newFixture(t)
	f.node("n1", "4")
	victim := f.pod("engine", "4")
	delete(f.pods, "shop/engine")
	victim.Namespace = "infra"
	f.pods["infra/engine"] = victim
	f.step(machine.PodGone{UID: "engine"})
	victim.Spec.NodeName = "n1"
	f.step(machine.PodSet{Pod: decode.Pod(victim.DeepCopy())})
	high := int32(1000)
	vip := f.pod("vip", "4")
	vip.Spec.Priority = &high
	f.step(machine.PodSet{Pod: decode.Pod(vip.DeepCopy())})
	f.step(machine.ScheduleOne{})
	return f
}

// A user who may get a pod and not the path is told nothing of pods whose namespace he may
// not list: not in an answer, its text, its history or a stream. The others are told all.
func TestNarrowAnswers(t *testing.T) {
	f := pressed(t)
	f.pod("big", "4")
	f.step(machine.ScheduleOne{})
	paths := []string{"why?pod=shop/vip", "why?pod=shop/vip&output=text", "why?pod=shop/vip&output=wide", "records?pod=shop/vip", "why?pod=shop/big", "why?pod=shop/big&output=wide"}
	for name, c := range map[string]struct {
		reader *access.Reader
		sees   bool
	}{
		"nobody guards":        {nil, true},
		"of the path":          {readerOf(nil, false), true},
		"of the pod":           {readerOf(lists{"shop": true}, true), false},
		"of both namespaces":   {readerOf(lists{"shop": true, "infra": true}, true), true},
		"of this pod, no list": {readerOf(nil, true), false},
	} {
		f.reader = c.reader
		told := 0
		for _, path := range paths {
			code, body := f.get(path, nil)
			if code != http.StatusOK {
				t.Fatalf("%s: %s: %d %s", name, path, code, body)
			}
			if strings.Contains(body, "engine") || strings.Contains(body, "infra") {
				told++
				if !c.sees {
					t.Errorf("%s: %s tells of infra/engine: %s", name, path, body)
				}
			} else if strings.Contains(path, "vip") && !c.sees && !strings.Contains(body, hidden) {
				t.Errorf("%s: %s leaves the victim out: %s", name, path, body)
			}
			if own := strings.TrimSuffix(strings.Split(path, "pod=")[1], "&output=text"); !strings.Contains(body, strings.TrimSuffix(own, "&output=wide")) {
				t.Errorf("%s: %s does not name the pod that is asked about: %s", name, path, body)
			}
		}
		if c.sees && told < 4 {
			t.Errorf("%s: only %d answers name the victim", name, told)
		}
	}
}

// A stream about one pod names no pod that is hidden either.
func TestNarrowStream(t *testing.T) {
	f := pressed(t)
	f.reader = readerOf(lists{"shop": true}, true)
	reply, err := http.Get(f.server.URL + Prefix + "watch?pod=shop/vip&since=1h")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	lines := bufio.NewScanner(reply.Body)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "infra") {
			t.Fatalf("the stream tells of infra/engine: %s", lines.Text())
		}
		if strings.Contains(lines.Text(), hidden) {
			return
		}
	}
	t.Error("the stream does not tell of the preemption")
}

// refused is a cluster in which a plugin refuses shop/cart and names a pod of another
// namespace: in a reason, and then in an error.
func refused(t *testing.T) *fixture {
	f := newFixture(t)
	f.node("n1", "4")
	f.step(machine.NamespaceSet{Namespace: &object.Namespace{Name: "infra", Labels: map[string]string{v1.LabelMetadataName: "infra"}}})
	cart := f.pod("cart", "8")
	d := &decision.Decision{UID: cart.UID, Pod: types.NamespacedName{Namespace: "shop", Name: "cart"}, Attempt: 7, Result: decision.ResultUnschedulable, NodesTotal: 1,
		Tallies: []decision.Tally{{Blocker: decision.Blocker{Plugin: "Hosted", Code: decision.Unschedulable, Reasons: []string{"node affinity/selector of pod infra/engine"}}, Nodes: 1}}}
	failed := &decision.Decision{UID: cart.UID, Pod: d.Pod, Attempt: 8, Result: decision.ResultError, Err: errors.New(`asking "infra/engine" failed`)}
	f.now = f.now.Add(time.Second)
	f.r.Observe(loop.Step{Now: f.now, Effects: []machine.Effect{machine.AttemptDone{Decision: d}, machine.AttemptDone{Decision: failed}}})
	return f
}

// What plugins said of a pod goes through the veil wherever it is read: records, a stream, the
// history of an answer, and the last attempt where there is no answer. It is not found by what
// is hidden of it either. Records do without the loop.
func TestNarrowMessages(t *testing.T) {
	for name, hinder := range map[string]func(*fixture){
		"":            func(*fixture) {},
		"no copies":   func(f *fixture) { f.copies = errors.New("hosted plugins, such as that of infra/engine") },
		"a dead loop": func(f *fixture) { f.deaf = true },
	} {
		for _, narrow := range []bool{true, false} {
			f := refused(t)
			hinder(f)
			f.reader = readerOf(lists{"shop": true}, narrow)
			told := ""
			for _, path := range []string{"why?pod=shop/cart", "records?pod=shop/cart", "records?pod=shop/cart&reason=infra"} {
				_, body := f.get(path, nil)
				told += body
			}
			told += f.firstEvents("watch?pod=shop/cart&since=1h", 2)
			if strings.Contains(told, "engine") == narrow || strings.Contains(told, hidden) != narrow {
				t.Errorf("%q, narrow %t: %s", name, narrow, told)
			}
			if !strings.Contains(told, "node affinity/selector of pod") {
				t.Errorf("%q, narrow %t: a word that is no name is hidden: %s", name, narrow, told)
			}
			if _, body := f.get("records?pod=shop/cart&reason=infra", nil); strings.Contains(body, `"attempt": 7`) == narrow {
				t.Errorf("%q, narrow %t: sought by a name: %s", name, narrow, body)
			}
		}
	}
}

// firstEvents returns the first events of a stream.
func (f *fixture) firstEvents(path string, n int) (text string) {
	reply, err := http.Get(f.server.URL + Prefix + path)
	if err != nil {
		f.Fatal(err)
	}
	defer reply.Body.Close()
	for lines := bufio.NewScanner(reply.Body); n > 0 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "data: ") {
			text += lines.Text()
			n--
		}
	}
	return text
}

// A word that only looks like a pod's name stays, and a line's end is one.
func TestVeilText(t *testing.T) {
	v := &veil{ctx: t.Context(), reader: readerOf(lists{"shop": true}, true), own: "infra/mine", sees: map[string]bool{}, known: map[string]bool{"infra": true, "shop": true}}
	const text = `busy:\ninfra/a\u001binfra/b; ` + "infra/a, infra/b.\ninfra/c-1.x (infra/d) shop/e example.com/infra/f x-infra/g nodes/n infra: 1/infra/2 infra/mine"
	const want = `busy:\n` + hidden + `\u001b` + hidden + "; " + hidden + ", " + hidden + ".\n" + hidden + " (" + hidden + ") shop/e example.com/infra/f x-infra/g nodes/n infra: 1/infra/2 infra/mine"
	if got := v.text(text); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A record hides a pod of a namespace that is gone since: each word that may name one. Words with a
// slash that begin with no namespace's name stay, and so does what the scheduler itself writes.
func TestVeilOfRecords(t *testing.T) {
	f := newFixture(t)
	f.node("n1", "4")
	cart := f.pod("cart", "8")
	f.step(machine.NamespaceSet{Namespace: &object.Namespace{Name: "secret"}})
	d := &decision.Decision{UID: cart.UID, Pod: types.NamespacedName{Namespace: "shop", Name: "cart"}, Attempt: 7, Result: decision.ResultError, NodesTotal: 1,
		Err:     errors.New(`Delete "https://10.0.0.1:443/api/v1/namespaces/secret/pods/engine": refused`),
		Tallies: []decision.Tally{{Blocker: decision.Blocker{Plugin: "Hosted", Code: decision.Unschedulable, Reasons: []string{"waits for secret/engine and/or more CPU"}}, Nodes: 1}}}
	f.now = f.now.Add(time.Second)
	f.r.Observe(loop.Step{Now: f.now, Effects: []machine.Effect{machine.AttemptDone{Decision: d}}})
	f.step(machine.NamespaceGone{Name: "secret"})
	f.reader = readerOf(lists{"shop": true}, true)
	for _, path := range []string{"records?pod=shop/cart", "why?pod=shop/cart"} {
		if _, body := f.get(path, nil); strings.Contains(body, "engine") || !strings.Contains(body, hidden+" and/or more CPU") {
			t.Errorf("%s: %s", path, body)
		}
	}
	v := &veil{ctx: t.Context(), reader: readerOf(lists{"shop": true}, true), own: "infra/mine", sees: map[string]bool{},
		knew: func(namespace string) bool {
			return slices.Contains([]string{"infra", "secret", "shop", "0", "affinity"}, namespace)
		}}
	for text, want := range map[string]string{
		"0/3 nodes are available: node affinity/selector of infra/mine, shop/a and CPU/memory":  "",
		"taint node.kubernetes.io/unreachable, device gpu.nvidia.com/pool/gpu-0, /var/lib/pods": "",
		"0/3 pods": hidden + " pods", "1/3 pods with limits and/or requests, read/write": "",
		`a:\nsecret/p-1.x.`: `a:\n` + hidden + ".", `\u001bsecret/p`: `\u001b` + hidden,
		"pod/secret/p Pod/secret/p (secret/p)":                                         hidden + " " + hidden + " (" + hidden + ")",
		"/api/v1/namespaces/secret/pods/p":                                             hidden,
		"a.example.com/api/v1/namespaces/secret/pods/p /api/v1/namespaces/shop/pods/p": hidden + " /api/v1/namespaces/shop/pods/p",
	} {
		if got := v.recorded(text); got != cmp.Or(want, text) {
			t.Errorf("%q becomes %q, want %q", text, got, cmp.Or(want, text))
		}
	}
}

// A stream of records does not ask the loop for anything.
func TestStreamAsksNoLoop(t *testing.T) {
	f := refused(t)
	f.reader = readerOf(lists{"shop": true}, true)
	f.deaf = true
	if told := f.firstEvents("watch?pod=shop/cart&since=1h", 2); !strings.Contains(told, "affinity/selector") {
		t.Error(told)
	}
}

// Of ever so many namespaces only some are asked about. The names of the others are hidden.
func TestVeilIsBounded(t *testing.T) {
	may := lists{}
	v := &veil{ctx: t.Context(), reader: readerOf(may, true), own: "shop/cart", sees: map[string]bool{}}
	r := records.Record{}
	for i := range 3 * mostAsked {
		ns := "ns" + strings.Repeat("x", i)
		may[ns] = true
		r.Victims = append(r.Victims, ns+"/p")
	}
	told := 0
	for _, name := range v.record(r).Victims {
		if name != hidden {
			told++
		}
	}
	if told != mostAsked || len(v.sees) != mostAsked {
		t.Errorf("%d names are shown and %d namespaces asked about, want %d", told, len(v.sees), mostAsked)
	}
}

// Only questions about one pod are about one.
func TestAboutPod(t *testing.T) {
	for path, want := range map[string]string{
		"why?pod=shop/cart": "shop/cart", "why?pod=cart": "default/cart", "records?pod=shop/cart&limit=3": "shop/cart", "watch?pod=shop/cart&since=1m": "shop/cart",
		"records": "", "watch?pod=shop/cart&every=1s": "", "nodes": "", "node?name=n1&pod=shop/cart": "", "history": "", "records?node=n1": "", "why/all": "", "blockers?pod=shop/cart": "", "summary?pod=shop/cart": "", "why?pod=a/b/c": "", "why?pod=a/b&pod=c/d": "", "status": "", "pending?namespace=shop": "",
	} {
		got, ok := AboutPod(httptest.NewRequest(http.MethodGet, Prefix+path, nil))
		if ok != (want != "") || ok && got != (types.NamespacedName{Namespace: strings.Split(want, "/")[0], Name: strings.Split(want, "/")[1]}) {
			t.Errorf("%s: %v %t, want %q", path, got, ok, want)
		}
	}
}

// Whoever may not list the pods of a namespace is not told that a pod there has the labels
// that a required affinity looks for, nor that one there has similar labels.
func TestNarrowNearMisses(t *testing.T) {
	f := newFixture(t)
	f.node("n1", "8")
	other := f.pod("other", "1")
	delete(f.pods, "shop/other")
	other.Namespace, other.Labels = "infra", map[string]string{"app": "engine", "tier": "gold"}
	f.pods["infra/other"] = other
	f.step(machine.PodGone{UID: "other"})
	other.Spec.NodeName = "n1"
	f.step(machine.PodSet{Pod: decode.Pod(other.DeepCopy())})
	for name, term := range map[string]v1.PodAffinityTerm{
		"in": {TopologyKey: v1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "engine"}}},
		"as": {TopologyKey: v1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "Gold"}}, Namespaces: []string{"infra"}},
	} {
		pod := f.pod(name, "1")
		pod.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term}}}
		f.step(machine.PodSet{Pod: decode.Pod(pod.DeepCopy())})
		f.step(machine.ScheduleOne{})
		for _, output := range []string{"json", "wide"} {
			told := func(reader *access.Reader) bool {
				f.reader = reader
				code, body := f.get("why?pod=shop/"+name+"&output="+output, nil)
				if code != http.StatusOK {
					t.Fatalf("%s: %d %s", name, code, body)
				}
				return strings.Contains(body, "in namespace infra") || strings.Contains(body, "infra/other") || strings.Contains(body, "gold")
			}
			if told(readerOf(lists{"shop": true}, true)) {
				t.Errorf("%s, %s: tells of infra/other", name, output)
			}
			if !told(nil) {
				t.Errorf("%s, %s: nobody is told of infra/other", name, output)
			}
		}
	}
}
