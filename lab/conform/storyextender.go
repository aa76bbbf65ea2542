package conform

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"sigs.k8s.io/yaml"

	"github.com/berth-scheduler/berth/core/machine"
)

// storyExtender answers kube-scheduler what a story's extender answered Berth about the
// same pod last.
type storyExtender struct {
	*httptest.Server

	mu      sync.Mutex
	answers map[types.UID]machine.ExtenderReply
}

func newStoryExtender() *storyExtender {
	x := &storyExtender{answers: map[types.UID]machine.ExtenderReply{}}
	x.Server = httptest.NewServer(x)
	return x
}

func (x *storyExtender) answered(e machine.ExtenderReply) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answers[e.UID] = e
}

// ServeHTTP answers the verb filter.
func (x *storyExtender) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var args extenderv1.ExtenderArgs
	if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	x.mu.Lock()
	said := x.answers[args.Pod.UID]
	x.mu.Unlock()
	passed := slices.DeleteFunc(askedAbout(&args), func(name string) bool { return !slices.Contains(said.Passed, name) })
	_ = json.NewEncoder(w).Encode(extenderv1.ExtenderFilterResult{NodeNames: &passed, FailedNodes: said.Failed})
}

// configured returns the configuration with the extender in it.
func (x *storyExtender) configured(text string) (string, error) {
	c := map[string]any{}
	if err := yaml.Unmarshal([]byte(cmp.Or(text, "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration}")), &c); err != nil {
		return "", err
	}
	c["extenders"] = []any{map[string]any{"urlPrefix": x.URL, "filterVerb": "filter", "nodeCacheCapable": true}}
	said, err := yaml.Marshal(c)
	return string(said), err
}
