package attack

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/api"
	"github.com/berth-scheduler/berth/lab/cluster"
)

// What the viewer may not be told: the namespace, its label, and the names, labels and workload
// of its pods.
const (
	vault         = "zvault"
	vaultLabel    = "zeppelin"
	vaultPod      = "zircon"
	vaultTier     = "zenith"
	vaultWorkload = "zodiac"
)

var vaultWords = []string{vault, vaultLabel, vaultPod, vaultTier, vaultWorkload}

// priority is the class of pods that preempt.
const priority = "berth-attack-high"

// blockade is pods on a node of their own. The hidden ones block those of the viewer, or are
// blocked by them.
type blockade struct {
	name string
	pods []blockadePod // in the order in which they come
}

type blockadePod struct {
	hidden bool
	cpu    string // of the four of the node
	more   func(*corev1.Pod)
}

func plainPod(*corev1.Pod) {}

func preempts(p *corev1.Pod) { p.Spec.PriorityClassName = priority }

// lingers makes a pod that stays when it is evicted.
func lingers(p *corev1.Pod) {
	grace := int64(3600)
	p.Spec.TerminationGracePeriodSeconds = &grace
}

func holdsPort(p *corev1.Pod) {
	p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 7070, HostPort: 7070}}
}

// toTier returns a term about pods of all namespaces.
func toTier(selector *metav1.LabelSelector) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: selector, NamespaceSelector: &metav1.LabelSelector{}}}
}

func avoids(selector *metav1.LabelSelector) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: toTier(selector)}}
	}
}

var (
	anyTier = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpExists}}}
	asker   = &metav1.LabelSelector{MatchLabels: map[string]string{"asks": "true"}}
)

var blockades = []blockade{
	{"victim", []blockadePod{{true, "4", lingers}, {false, "4", preempts}}},
	{"nominee", []blockadePod{{false, "4", lingers}, {true, "4", preempts}, {false, "1", plainPod}}},
	{"load", []blockadePod{{true, "4", plainPod}, {false, "1", plainPod}}},
	{"port", []blockadePod{{true, "1", holdsPort}, {false, "1", holdsPort}}},
	{"avoided", []blockadePod{{true, "1", plainPod}, {false, "1", avoids(anyTier)}}},
	{"keeper", []blockadePod{{true, "1", avoids(asker)}, {false, "1", plainPod}}},
	{"elsewhere", []blockadePod{{true, "1", plainPod}, {false, "1", func(p *corev1.Pod) {
		terms := toTier(anyTier)
		terms[0].NamespaceSelector = nil
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	}}}},
}

// pod returns the pod that comes at a place of the blockade.
func (b *blockade) pod(place int) *corev1.Pod {
	of := b.pods[place]
	p := newPod(target, fmt.Sprintf("asks-%s-%d", b.name, place), of.cpu)
	p.Labels = map[string]string{"asks": "true"}
	if of.hidden {
		p = newPod(vault, vaultPod+"-"+b.name, of.cpu)
		p.Labels = map[string]string{"tier": vaultTier}
		controls := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: vaultWorkload + "-5d4f8b", UID: "z", Controller: &controls}}
	}
	p.Spec.NodeSelector = map[string]string{ownLabel: b.name}
	p.Spec.Tolerations = []corev1.Toleration{{Key: ownLabel, Operator: corev1.TolerationOpExists}}
	of.more(p)
	return p
}

// node returns the node of the blockade, to which no other pods go.
func (b *blockade) node() *corev1.Node {
	n := cluster.Nodes(1)[0]
	n.Name = "blockade-" + b.name
	n.Labels[corev1.LabelHostname], n.Labels[ownLabel] = n.Name, b.name
	n.Spec.Taints = []corev1.Taint{{Key: ownLabel, Effect: corev1.TaintEffectNoSchedule}}
	n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("4") // its capacity as well: it is one map
	return n
}

// hiddenPods asks, as somebody who may look at one namespace, about pods there that are blocked
// by pods of another.
func hiddenPods(s *stage) {
	s.block()
	for i := range blockades {
		b := &blockades[i]
		told := false // the reader of records
		for place := range b.pods {
			if !b.pods[place].hidden && s.failure() == nil {
				told = s.askAbout(b.pod(place)) || told
			}
		}
		if !told && s.failure() == nil {
			s.note(fmt.Errorf("the blockade %s has nothing to hide", b.name))
		}
	}
	daemon := s.asking(s.lab.viewer)
	own := []string{daemon[0], daemon[1], "-n", target} // the kubeconfig
	for _, call := range [][]string{with(daemon, "why", "--all"), with(daemon, "events", "--since", "1h"), with(daemon, "top", "--once"), with(daemon, "status"),
		with(own, "why", "--all"), with(own, "simulate"), with(own, "what-if", "drain", "blockade-port"), with(own, "fit", "--cpu", "1")} {
		s.checkHidden(fmt.Sprintf("berth %s", call[0]), s.berth(call...))
	}
}

// block creates the nodes and the pods of the blockades.
func (s *stage) block() {
	classes := s.lab.client.SchedulingV1().PriorityClasses()
	_, err := classes.Create(s.ctx, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: priority}, Value: 1000}, metav1.CreateOptions{})
	s.note(err)
	s.finally(func() { _ = classes.Delete(s.ctx, priority, metav1.DeleteOptions{}) })
	most := 0
	for i := range blockades {
		_, err := s.lab.client.CoreV1().Nodes().Create(s.ctx, blockades[i].node(), metav1.CreateOptions{})
		s.note(err)
		most = max(most, len(blockades[i].pods))
	}
	for place := range most {
		for i := range blockades {
			if b := &blockades[i]; place < len(b.pods) {
				s.create(1, func(int) *corev1.Pod { return b.pod(place) })
			}
		}
		s.need("each of the pods to be bound or rejected", func() bool { return s.allTried(target) && s.allTried(vault) })
	}
}

// askAbout asks for all that the viewer may be told about a pod of his. It reports whether the
// reader of records is told of the vault.
func (s *stage) askAbout(p *corev1.Pod) (told bool) {
	name := p.Namespace + "/" + p.Name
	about := url.QueryEscape(name)
	for _, path := range []string{"why?pod=" + about, "why?output=text&pod=" + about, "why?output=wide&pod=" + about, "records?pod=" + about,
		"records?pod=" + about + "&reason=" + vaultPod} {
		_, body, err := s.ask(s.ctx, person{token: s.lab.viewer}, api.Prefix+path, mostAnswer)
		s.note(err)
		s.checkHidden(path, answer{stdout: strings.ReplaceAll(body, "reason="+vaultPod, "")})
	}
	// A stream does not end.
	_, body, _ := s.ask(s.ctx, person{token: s.lab.viewer}, api.Prefix+"watch?since=1h&pod="+about, 500*time.Millisecond)
	if !strings.Contains(body, "event: record") {
		s.note(fmt.Errorf("the stream about %s has no record: %s", name, short(body)))
	}
	s.checkHidden("watch?pod="+name, answer{stdout: body})
	for _, call := range [][]string{{"why", name}, {"why", name, "-o", "wide"}, {"why", name, "-o", "json"}, {"events", name}, {"events", name, "-o", "json"}} {
		a := s.berth(with(s.asking(s.lab.viewer), call...)...)
		if a.status == 2 {
			s.broke("a viewer of a namespace is told nothing of his own pod by berth %v: %s", call, short(a.stderr))
		}
		s.checkHidden("berth "+strings.Join(call, " "), a)
	}
	_, body, err := s.ask(s.ctx, person{token: s.lab.reader}, api.Prefix+"why?output=wide&pod="+about, mostAnswer)
	s.note(err)
	return strings.Contains(body, vaultPod)
}

// checkHidden checks that the viewer is told nothing of the vault.
func (s *stage) checkHidden(what string, a answer) {
	text := a.stdout + a.stderr
	for _, word := range vaultWords {
		if at := strings.Index(text, word); at >= 0 {
			s.broke("a viewer of a namespace is told of another by %s: ...%s...", what, text[max(0, at-100):min(len(text), at+100)])
			return
		}
	}
}
