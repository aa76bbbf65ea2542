package attack

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var objectAttacks = []Attack{
	{Name: "objects/selectors", Short: true, start: plain,
		Title: "a pod with a nodeSelector of 2,000 keys, and questions about it", play: selectors},
	{Name: "objects/anti-affinity", start: plain,
		Title: "40 pods with 5,000 anti-affinity terms each", play: antiAffinity},
	{Name: "objects/controls", Short: true, start: plain,
		Title: "control characters where the API takes them, in all that the tool shows", play: controls},
}

// askBoth runs the tool twice: it asks the daemon, and it reads the cluster itself.
func (s *stage) askBoth(args ...string) {
	s.calls([][]string{with(s.asking(s.lab.reader), args...), with(s.owner(), args...)}, func([]string, answer) {})
}

func selectors(s *stage) {
	s.create(1, func(int) *corev1.Pod {
		p := newPod(target, "many", "1m")
		p.Spec.NodeSelector = map[string]string{}
		for i := range 2000 {
			p.Spec.NodeSelector[fmt.Sprintf("example.com/key-%d", i)] = "x"
		}
		return p
	})
	s.create(1, func(int) *corev1.Pod { return newPod(target, "giant", "1k") })
	s.need("both pods to be rejected", func() bool { return s.waiting() == 2 })
	s.askBoth("why", target+"/many")
	s.askBoth("why", "--all")
	if a := s.berth(with(s.asking(s.lab.reader), "why", target+"/giant")...); a.status == 2 {
		s.broke("why of another pod after that: exit status 2: %s", short(a.stderr))
	}
}

func antiAffinity(s *stage) {
	const pods, terms = 40, 5000
	s.create(pods, func(i int) *corev1.Pod {
		p := newPod(target, fmt.Sprintf("hermit-%d", i), "1m")
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}
		for j := range terms {
			p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(
				p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, corev1.PodAffinityTerm{
					TopologyKey:   corev1.LabelHostname,
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("other-%d-%d", i, j)}}})
		}
		return p
	})
	s.need("each of the pods to be bound or rejected", func() bool { return s.allTried(target) })
}

// allTried reports whether the scheduler has said something of each of the namespace's pods.
func (s *stage) allTried(namespace string) bool {
	list, err := s.lab.client.CoreV1().Pods(namespace).List(s.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
	if !s.note(err) {
		return false
	}
	for i := range list.Items {
		if conditionOf(&list.Items[i]) == "" {
			return false
		}
	}
	return true
}

// largePods are pods that are as large as the API takes them, each in its way.
var largePods = map[string]func(*corev1.Pod){
	"tolerations": func(p *corev1.Pod) {
		for i := range 8000 {
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: fmt.Sprintf("example.com/key-%d", i), Operator: corev1.TolerationOpExists})
		}
	},
	"labels": func(p *corev1.Pod) {
		p.Labels = map[string]string{}
		for i := range 15_000 {
			p.Labels[fmt.Sprintf("example.com/label-%d", i)] = "some-value"
		}
	},
	"terms": func(p *corev1.Pod) {
		required := &corev1.NodeSelector{}
		for i := range 4000 {
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: fmt.Sprintf("example.com/key-%d", i), Operator: corev1.NodeSelectorOpIn, Values: []string{"a", "b", "c"}}}})
		}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
	},
	"spreads": func(p *corev1.Pod) {
		for i := range 4000 {
			p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{MaxSkew: 1,
				TopologyKey: fmt.Sprintf("example.com/domain-%d", i), WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "spread"}}})
		}
	},
	"preferences": func(p *corev1.Pod) {
		anti := &corev1.PodAntiAffinity{}
		for i := range 4000 {
			anti.PreferredDuringSchedulingIgnoredDuringExecution = append(anti.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.WeightedPodAffinityTerm{Weight: 1, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname,
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprintf("other-%d", i)}}}})
		}
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: anti}
	},
	"volumes": func(p *corev1.Pod) {
		for i := range 5000 {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", i), VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprintf("claim-%d", i)}}})
		}
	},
	"containers": func(p *corev1.Pod) {
		for i := range 1000 {
			c := corev1.Container{Name: fmt.Sprintf("c%d", i), Image: fmt.Sprintf("registry.k8s.io/pause:%d", i)}
			for j := range 5 {
				c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: int32(1000 + 5*i + j), HostPort: int32(1000 + 5*i + j)})
			}
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
	},
	"resources": func(p *corev1.Pod) {
		r := &p.Spec.Containers[0].Resources
		r.Limits = corev1.ResourceList{}
		for i := range 5000 {
			name := corev1.ResourceName(fmt.Sprintf("example.com/resource-%d", i))
			r.Requests[name], r.Limits[name] = resource.MustParse("1"), resource.MustParse("1")
		}
	},
}

// largeAttacks are an attack for each way of being large, and one for nodes and volumes.
func largeAttacks() []Attack {
	all := []Attack{{Name: "objects/large-nodes", start: plain, play: largeNodes,
		Title: "nodes, volumes, claims and classes as large as the API takes them"}}
	for _, name := range slices.Sorted(maps.Keys(largePods)) {
		all = append(all, Attack{Name: "objects/large-" + name, start: plain,
			Title: "pods as large as the API takes them: " + name, play: func(s *stage) { s.enlarged(name) }})
	}
	return all
}

// enlarged creates pods that are large in one way, and asks about them.
func (s *stage) enlarged(way string) {
	pod := func(i int) *corev1.Pod {
		p := newPod(target, fmt.Sprintf("%s-%d", way, i), "1m")
		largePods[way](p)
		return p
	}
	s.create(10, pod)
	s.need("each of the pods to be bound or rejected", func() bool { return s.allTried(target) })
	s.askBoth("why", target+"/"+way+"-0")
	s.askBoth("why", "--all")
	s.calls([][]string{with(s.asking(s.lab.reader), "events", target+"/"+way+"-0"), with(s.owner(), "simulate", "-o", "wide"),
		with(s.owner(), "fit", "--pod", target+"/"+way+"-0")}, func([]string, answer) {})
}

func largeNodes(s *stage) {
	s.many(3, s.largeNode)
	s.many(3, s.largeVolume)
	s.create(3, func(i int) *corev1.Pod {
		p := newPod(target, fmt.Sprintf("claims-%d", i), "1m")
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprintf("claim-%d", i)}}}}
		return p
	})
	s.need("each of the pods to be bound or rejected", func() bool { return s.allTried(target) })
	s.askBoth("why", target+"/claims-0")
	s.calls([][]string{with(s.owner(), "simulate", "-o", "wide"), with(s.owner(), "what-if", "cordon", "node-0001")}, func([]string, answer) {})
}

// largeNode creates a node with very many labels, taints, images and resources.
func (s *stage) largeNode(i int) error {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("large-%d", i), Labels: map[string]string{ownLabel: "node"}}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourcePods: resource.MustParse("110")}
	for j := range 3000 {
		n.Labels[fmt.Sprintf("example.com/label-%d", j)] = "some-value"
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: fmt.Sprintf("example.com/taint-%d", j), Effect: corev1.TaintEffectNoSchedule})
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.k8s.io/image:%d", j)}, SizeBytes: 1 << 40})
		n.Status.Allocatable[corev1.ResourceName(fmt.Sprintf("example.com/resource-%d", j))] = resource.MustParse("1")
	}
	n.Status.Capacity = n.Status.Allocatable
	_, err := s.lab.client.CoreV1().Nodes().Create(s.ctx, n, metav1.CreateOptions{})
	return err
}

// largeVolume creates a volume, a claim and a class with long rules of topology.
func (s *stage) largeVolume(i int) error {
	name, class := fmt.Sprintf("claim-%d", i), fmt.Sprintf("large-%d", i)
	var values []string
	for j := range 10_000 {
		values = append(values, fmt.Sprintf("zone-%d", j))
	}
	own := metav1.ObjectMeta{Name: class, Labels: map[string]string{ownLabel: "volume"}}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	_, err := s.lab.client.StorageV1().StorageClasses().Create(s.ctx, &storagev1.StorageClass{ObjectMeta: own, Provisioner: "example.com/none",
		VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer),
		AllowedTopologies: []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: values}}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = s.lab.client.CoreV1().PersistentVolumes().Create(s.ctx, &corev1.PersistentVolume{ObjectMeta: own, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: modes, StorageClassName: class,
		PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/data"}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: values}}}}}},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = s.lab.client.CoreV1().PersistentVolumeClaims(target).Create(s.ctx, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: modes, StorageClassName: &class, Resources: corev1.VolumeResourceRequirements{Requests: size}}}, metav1.CreateOptions{})
	return err
}

// hostile is a text that a terminal would obey: it sets a title, clears the screen,
// writes over the line, and ends a line early.
const hostile = "x\x1b]0;owned\x07\x1b[2J\rfree\nforged: all is well\u009b31m\u0085"

func controls(s *stage) {
	s.create(1, func(int) *corev1.Pod {
		p := newPod(target, "claims", "1m")
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: hostile}}}}
		return p
	})
	s.create(1, func(int) *corev1.Pod {
		p := newPod(target, "elsewhere", "1m")
		p.Spec.SchedulerName = hostile
		p.Annotations = map[string]string{"example.com/note": hostile}
		return p
	})
	s.create(1, func(int) *corev1.Pod {
		p := newPod(target, "pictured", "1k")
		p.Spec.Containers[0].Image = strings.TrimSpace(hostile)
		return p
	})
	s.holdLease(hostile + "_id")
	s.need("the pods to be rejected", func() bool { return s.waiting() == 2 })
	for _, pod := range []string{"claims", "elsewhere", "pictured"} {
		s.askBoth("why", target+"/"+pod)
		s.askBoth("why", target+"/"+pod, "-o", "wide")
		s.berth(with(s.asking(s.lab.reader), "events", target+"/"+pod)...)
		s.berth(with(s.owner(), "fit", "--pod", target+"/"+pod)...)
	}
	s.askBoth("why", "--all")
	s.berth(with(s.asking(s.lab.reader), "events", "--since", "1h")...)
	s.berth(with(s.asking(s.lab.reader), "top", "--once")...)
	s.berth(with(s.owner(), "top", "--once")...)
	s.berth(with(s.owner(), "status")...)
	s.berth(with(s.asking(s.lab.reader), "status")...)
	for _, output := range []string{"table", "wide", "json", "yaml"} {
		s.berth(with(s.owner(), "simulate", "--explain", "-o", output)...)
	}
	s.berth(with(s.owner(), "what-if", "drain", "node-0001")...)
}

// holdLease gives the schedulers' lease to a holder until the attack is over.
func (s *stage) holdLease(holder string) {
	leases := s.lab.client.CoordinationV1().Leases(metav1.NamespaceSystem)
	const name = "kube-scheduler"
	if err := leases.Delete(s.ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		s.note(err)
	}
	_, err := leases.Create(s.ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: ptr.To(int32(15))}}, metav1.CreateOptions{})
	s.note(err)
	s.finally(func() { _ = leases.Delete(s.ctx, name, metav1.DeleteOptions{}) })
}
