package generate

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// ports has pods ask for host ports that collide in every way: by address, by
// wildcard, by protocol.
var ports = feature{pod: func(b *builder, p *v1.Pod) {
	used := map[int32]bool{}
	for range b.pick(0, 1, 1, 2) {
		port := int32(b.pick(80, 443, 8080))
		if used[port] {
			continue
		}
		used[port] = true
		cp := v1.ContainerPort{ContainerPort: port, HostPort: port,
			HostIP:   b.word("", "", "0.0.0.0", "127.0.0.1", "10.0.0.1", "::", "::1"),
			Protocol: v1.Protocol(b.word("", "TCP", "TCP", "UDP", "SCTP"))}
		if b.chance(20) {
			p.Spec.InitContainers = append(p.Spec.InitContainers, portedInit(b, cp, len(p.Spec.InitContainers)))
			continue
		}
		c := &p.Spec.Containers[b.IntN(len(p.Spec.Containers))]
		c.Ports = append(c.Ports, cp)
	}
	if b.chance(20) {
		c := &p.Spec.Containers[0]
		c.Ports = append(c.Ports, v1.ContainerPort{ContainerPort: 9999}) // no host port
	}
}}

// portedInit is an init container with a host port, which counts only when the
// container is restartable.
func portedInit(b *builder, port v1.ContainerPort, i int) v1.Container {
	c := v1.Container{Name: fmt.Sprintf("port%d", i), Image: "registry.k8s.io/pause:3.10", Ports: []v1.ContainerPort{port}}
	if b.chance(60) {
		always := v1.ContainerRestartPolicyAlways
		c.RestartPolicy = &always
	}
	return c
}

// catalogue is the images that nodes have and pods run. An image has one size
// wherever it is.
var catalogue = []v1.ContainerImage{
	{Names: []string{"docker.io/library/small:latest", "docker.io/library/small@sha256:aa"}, SizeBytes: 1 << 20},
	{Names: []string{"docker.io/library/edge:1"}, SizeBytes: 23 << 20},
	{Names: []string{"docker.io/library/mid:1", "docker.io/library/mid:latest"}, SizeBytes: 250 << 20},
	{Names: []string{"localhost:5000/big:latest"}, SizeBytes: 999999999},
	{Names: []string{"docker.io/library/huge:2"}, SizeBytes: 5 << 30},
	{Names: []string{"docker.io/library/odd:3"}, SizeBytes: 123456789},
	{Names: []string{"docker.io/library/empty:1"}},
}

// images gives nodes some of the catalogue and has pods run it by tag, by
// digest and by bare name. No pod has an image volume, for which kube-scheduler
// scores otherwise (docs/deviations.md).
var images = feature{node: imagedNode, renode: imagedNode, pod: func(b *builder, p *v1.Pod) {
	for i := range p.Spec.Containers {
		p.Spec.Containers[i].Image = imageName(b)
	}
	if b.chance(25) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Name: "fetch", Image: imageName(b)})
	}
	if b.chance(10) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Name: "convert", Image: imageName(b)})
	}
}}

func imagedNode(b *builder, n *v1.Node) {
	n.Status.Images = nil
	for _, image := range catalogue {
		if b.chance(45) {
			n.Status.Images = append(n.Status.Images, *image.DeepCopy())
		}
	}
}

func imageName(b *builder) string {
	return b.word("docker.io/library/small", "docker.io/library/small:latest", "docker.io/library/small@sha256:aa",
		"docker.io/library/edge:1", "docker.io/library/mid", "docker.io/library/mid:1", "localhost:5000/big",
		"localhost:5000/big:latest", "docker.io/library/huge:2", "docker.io/library/odd:3",
		"docker.io/library/empty:1", "docker.io/library/nowhere:1")
}

// gates holds pods back until a later change opens their gates.
var gates = feature{pod: func(b *builder, p *v1.Pod) {
	for i := range b.pick(0, 0, 0, 0, 0, 0, 0, 1, 2, 3) {
		p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, v1.PodSchedulingGate{Name: fmt.Sprintf("example.com/gate-%d", 9-i)})
	}
}, repod: func(b *builder, p *v1.Pod) {
	if n := len(p.Spec.SchedulingGates); n > 0 {
		p.Spec.SchedulingGates = p.Spec.SchedulingGates[:b.pick(0, 0, n-1)]
	}
}}

// kubelets has nodes declare features and pods call for some of them.
var kubelets = feature{node: declaring, renode: declaring, pod: func(b *builder, p *v1.Pod) {
	if b.chance(30) {
		p.Spec.HostNetwork, p.Spec.HostUsers = true, new(b.chance(20))
	}
	if b.chance(20) {
		c := &p.Spec.Containers[b.IntN(len(p.Spec.Containers))]
		c.RestartPolicyRules = []v1.ContainerRestartRule{{Action: v1.ContainerRestartRuleActionRestartAllContainers}}
	}
	if b.chance(15) {
		c := &p.Spec.Containers[b.IntN(len(p.Spec.Containers))]
		c.VolumeMounts = append(c.VolumeMounts, v1.VolumeMount{Name: "scratch", MountPath: "/scratch", BindMountOptions: []string{string(v1.BindMountOptionNoExec)}})
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "scratch", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
	}
}}

func declaring(b *builder, n *v1.Node) {
	n.Status.DeclaredFeatures = nil
	for _, name := range []string{"Another", "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "VolumeBindMountOptions"} {
		if b.chance(50) {
			n.Status.DeclaredFeatures = append(n.Status.DeclaredFeatures, name)
		}
	}
}
