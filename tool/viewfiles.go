package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	baseversion "k8s.io/component-base/version"

	"github.com/berth-scheduler/berth/core/machine"
	"github.com/berth-scheduler/berth/core/object"
	"github.com/berth-scheduler/berth/core/profile"
	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/edge/loop"
	"github.com/berth-scheduler/berth/edge/manifest"
	"github.com/berth-scheduler/berth/edge/page"
	"github.com/berth-scheduler/berth/edge/records"
	"github.com/berth-scheduler/berth/sim"
)

// still is a cluster from files or of a record, with a scheduler that knows it and takes no more
// steps. It stands for the daemon and for the API server.
type still struct {
	identity string // of the daemon that it stands for
	written  written
	world    *sim.World
	records  *records.Recorder
	history  *records.History
	options  machine.Options
	profiles func() ([]*profile.Profile, error)
	version  string
	mu       sync.Mutex // held by who looks at the machine
}

// recordBytes is the memory for the records of a simulation.
const recordBytes = 64 << 20

// load reads the files and, with --simulate, places the pods.
func (v *viewing) load(ctx context.Context, stderr io.Writer) (*still, error) {
	s := v.source
	s.keepWritten = true
	if v.redact {
		s.redacted = redactor()
	}
	set, in, err := s.load(ctx, strings.NewReader(""), stderr)
	if err != nil {
		return nil, err
	}
	notes(stderr, set.Notices)
	c := &still{identity: "files", records: records.New(recordBytes), options: in.Machine, version: v.build.Version, profiles: func() ([]*profile.Profile, error) {
		if in.Scheduler.Hosts() {
			return nil, api.ErrHosted
		}
		_, _, o, err := s.scheduler()
		return o.Profiles, err
	}}
	c.history = records.NewHistory(c.records)
	if c.world, err = sim.Load(in); err != nil {
		return nil, err
	}
	c.written = newFromFiles(set)
	c.records.Watch(c.world.Machine)
	for _, p := range c.world.Cluster.Pods() {
		c.records.Observe(loop.Step{Now: c.world.Now, Event: machine.PodSet{Pod: p}})
	}
	if v.simulate {
		c.observe()
		c.world.Exhaust()
		c.records.Flush()
	}
	return c, nil
}

// observe keeps records of what happens from now on.
func (c *still) observe() {
	shown := c.world.Observe
	c.world.Told = func(e machine.Event) { c.records.Observe(loop.Step{Now: c.world.Now, Event: e}) }
	c.world.Observe = func(e machine.Effect) {
		if shown != nil {
			shown(e)
		}
		c.records.Observe(loop.Step{Now: c.world.Now, Effects: []machine.Effect{e}})
	}
}

// data returns what the daemon's own handler says of the cluster.
func (c *still) data(ctx context.Context) (page.Data, error) {
	core, err := corev1.NewForConfig(&rest.Config{Host: "http://files", Transport: c, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		return nil, err
	}
	now, yes := c.world.Now, func() bool { return true }
	options := c.options
	options.Profiles = nil
	return page.Local(ctx, api.Handler(api.Options{
		Recorder: c.records, History: c.history, Read: core.RESTClient(), Stopped: ctx.Done(),
		Build: api.Build{Version: c.version, Kubernetes: baseversion.DefaultKubeBinaryVersion, Gates: map[string]bool{}},
		Leads: yes, Synced: yes, Leader: func() string { return "" }, Now: func() time.Time { return now },
		Profiles: c.profiles, Machine: options,
		Status: func(context.Context) api.Status {
			return api.Status{Identity: c.identity, Started: now, Leads: true, Synced: true, Configuration: api.Configuration{Since: now, Profiles: c.world.Machine.Profiles()}}
		},
		Inspect: func(_ context.Context, look func(*machine.Machine)) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			look(c.world.Machine)
			return nil
		},
	})), nil
}

// RoundTrip is for http.RoundTripper: what an API server would say of the files. The daemon's
// handler asks for one pod, node or claim, or for the pods without a node.
func (c *still) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := c.object(strings.Split(strings.Trim(r.URL.Path, "/"), "/"))
	if err != nil {
		return nil, err
	}
	code := http.StatusOK
	if body == nil {
		code = http.StatusNotFound
		if body, err = json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
}

// object returns the JSON at a path of the API, nil if there is none.
func (c *still) object(parts []string) ([]byte, error) {
	parts = parts[min(2, len(parts)):] // api/v1
	switch {
	case len(parts) == 1 && parts[0] == "pods":
		list := v1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
		for _, known := range c.world.Cluster.Pods() {
			if p := c.pod(known); p != nil && known.NodeName == "" {
				list.Items = append(list.Items, *p)
			}
		}
		return json.Marshal(list)
	case len(parts) == 2 && parts[0] == "nodes":
		if n := c.written.node(parts[1]); n != nil {
			return json.Marshal(n)
		}
	case len(parts) == 4 && parts[0] == "namespaces" && parts[2] == "pods":
		if known := c.world.Cluster.Pod(parts[1] + "/" + parts[3]); known != nil {
			if p := c.pod(known); p != nil {
				return json.Marshal(p)
			}
		}
	case len(parts) == 4 && parts[0] == "namespaces" && parts[2] == "persistentvolumeclaims":
		return c.written.claim(parts[1], parts[3]), nil
	}
	return nil, nil
}

// pod returns a pod as it was written, with the node that it has now, nil if it was not written.
func (c *still) pod(is *object.Pod) *v1.Pod {
	p := c.written.pod(is)
	if p == nil {
		return nil
	}
	p = p.DeepCopy()
	p.Spec.NodeName = is.NodeName
	return p
}

// written is where the objects of a still stand as they were written. Each is nil if it is not there.
type written interface {
	pod(is *object.Pod) *v1.Pod
	node(name string) *v1.Node
	claim(namespace, name string) []byte
}

// fromFiles are objects of files.
type fromFiles struct {
	set  *manifest.Set
	pods map[string]*v1.Pod // by namespace/name
}

func newFromFiles(set *manifest.Set) fromFiles {
	f := fromFiles{set, map[string]*v1.Pod{}}
	for _, p := range set.Pods {
		f.pods[p.Namespace+"/"+p.Name] = p
	}
	return f
}

func (f fromFiles) pod(is *object.Pod) *v1.Pod { return f.pods[is.Key()] }

func (f fromFiles) node(name string) *v1.Node {
	for _, n := range f.set.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

func (f fromFiles) claim(namespace, name string) []byte {
	return f.set.Written("PersistentVolumeClaim", namespace, name)
}
