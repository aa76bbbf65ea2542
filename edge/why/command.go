package why

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-scheduler/berth/edge/fix"
	"github.com/berth-scheduler/berth/edge/terminal"
)

// commands are what to type for a fix, line by line.
func (f *facts) commands(of *fix.Fix) (lines []string) {
	if of.UndoesRollout {
		m := f.maker()
		return append(f.rollOut(&m), fmt.Sprintf("kubectl rollout undo deployment %s -n %s", word(m.name), word(f.api.Namespace)))
	}
	for i := range of.Changes {
		lines = append(lines, f.command(&of.Changes[i])...)
	}
	return lines
}

// command is what to type for a change.
func (f *facts) command(c *fix.Change) []string {
	switch {
	case c.Delete:
		return f.deleteCommands(c)
	case c.Create != nil:
		return f.createText(c)
	case c.Kind == "Node":
		return f.nodeCommands(c)
	case c.Kind == "Pod" && (c.Namespace != f.api.Namespace || c.Name != f.api.Name):
		return []string{fmt.Sprintf("kubectl patch pod %s -n %s --subresource resize --type=json -p '%s'", word(c.Name), word(c.Namespace), patchText(c.Patch, ""))}
	case c.Kind == "Pod":
		return f.podCommand(c)
	}
	return f.objectCommand(c)
}

// deleteCommands delete the pod. One that is being deleted goes once its finalizers are
// off, and on a lost node by force alone.
func (f *facts) deleteCommands(c *fix.Change) (lines []string) {
	terminating, held, lost := false, false, false
	for _, p := range f.cluster.Set.Pods {
		if p.Namespace == c.Namespace && p.Name == c.Name {
			terminating, held, lost = p.DeletionTimestamp != nil, len(p.Finalizers) > 0, fix.Lost(f.node(p.Spec.NodeName))
		}
	}
	if terminating && held {
		lines = append(lines, fmt.Sprintf(`kubectl patch pod %s -n %s --type=json -p '[{"op":"remove","path":"/metadata/finalizers"}]'`, word(c.Name), word(c.Namespace)))
	}
	switch {
	case terminating && lost:
		lines = append(lines, fmt.Sprintf("kubectl delete pod %s -n %s --force --grace-period=0 --ignore-not-found", word(c.Name), word(c.Namespace)))
	case !terminating:
		lines = append(lines, fmt.Sprintf("kubectl delete pod %s -n %s", word(c.Name), word(c.Namespace)))
	}
	return lines
}

// createText is the object in YAML, ready for kubectl. Nodes are not made that way:
// of them it is the shape. A volume that is gone is made of a backup.
func (f *facts) createText(c *fix.Change) []string {
	if n, ok := c.Create.(*v1.Node); ok {
		how := "grow the node pool of that node"
		if like := f.node(strings.TrimSuffix(n.Name, "-copy")); like == nil || shape(like) != shape(n) {
			how = "no node pool has such nodes"
		}
		return []string{terminal.Escape(fmt.Sprintf("# %s (%s)", shape(n), how))}
	}
	if v, ok := c.Create.(*v1.PersistentVolume); ok && v.Spec.CSI != nil && v.Spec.CSI.VolumeHandle == fix.LostHandle {
		return []string{terminal.Escape(fmt.Sprintf("# create PersistentVolume %s from a backup of its manifest: nothing here knows where its data is", v.Name))}
	}
	data, err := json.Marshal(c.Create)
	if err != nil {
		return nil
	}
	var object map[string]any
	if json.Unmarshal(data, &object) != nil {
		return nil
	}
	delete(object, "status")
	if m, ok := object["metadata"].(map[string]any); ok {
		delete(m, "creationTimestamp")
		delete(m, "uid")
	}
	if data, err = json.Marshal(object); err != nil {
		return nil
	}
	text, err := terminal.YAML(data)
	if err != nil {
		return nil
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return append(append([]string{"kubectl create -f - <<'EOF'"}, lines...), "EOF")
}

// shape describes nodes of one pool: the zone, the instance type and
// what they offer.
func shape(n *v1.Node) string {
	var parts []string
	if zone := n.Labels[v1.LabelTopologyZone]; zone != "" {
		parts = append(parts, "zone "+zone)
	}
	if instance := n.Labels[v1.LabelInstanceTypeStable]; instance != "" {
		parts = append(parts, instance)
	}
	a := n.Status.Allocatable
	parts = append(parts, fmt.Sprintf("%s CPUs", a.Cpu()), quantity(v1.ResourceMemory, a.Memory().Value())+" memory")
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if q := a[name]; strings.Contains(string(name), "/") && !q.IsZero() {
			parts = append(parts, fmt.Sprintf("%s %s", &q, name))
		}
	}
	return strings.Join(parts, ", ")
}

// nodeCommands are kubectl's verbs for nodes.
func (f *facts) nodeCommands(c *fix.Change) (lines []string) {
	// The taint of a cordoned node goes by itself.
	uncordons := slices.ContainsFunc(c.Patch, func(op fix.Op) bool { return op.Path == "/spec/unschedulable" })
	for _, op := range c.Patch {
		switch part, rest := cut(op.Path); {
		case op.Path == "/spec/unschedulable":
			lines = append(lines, "kubectl uncordon "+word(c.Name))
		case part == "/spec/taints/":
			var i int
			if n := f.node(c.Name); n != nil {
				if _, err := fmt.Sscan(rest, &i); err == nil && i < len(n.Spec.Taints) && !(uncordons && n.Spec.Taints[i].Key == v1.TaintNodeUnschedulable) {
					lines = append(lines, fmt.Sprintf("kubectl taint node %s %s", word(c.Name), word(n.Spec.Taints[i].ToString()+"-")))
				}
			}
		case part == "/metadata/labels/" && op.Op == "remove":
			lines = append(lines, fmt.Sprintf("kubectl label node %s %s", word(c.Name), word(unescape(rest)+"-")))
		case part == "/metadata/labels/":
			lines = append(lines, fmt.Sprintf("kubectl label node %s %s --overwrite", word(c.Name), word(fmt.Sprintf("%s=%v", unescape(rest), op.Value))))
		case op.Path == "/metadata/labels":
			for key, value := range op.Value.(map[string]any) { // any order: there is one, or each by itself
				lines = append(lines, fmt.Sprintf("kubectl label node %s %s --overwrite", word(c.Name), word(fmt.Sprintf("%s=%v", key, value))))
			}
		}
	}
	return lines
}

// cut splits a path behind its last slash.
func cut(path string) (before, after string) {
	at := strings.LastIndex(path, "/") + 1
	return path[:at], path[at:]
}

func unescape(s string) string { return strings.NewReplacer("~1", "/", "~0", "~").Replace(s) }

// podCommand changes the pod's template, or the pod itself where nobody makes it
// anew or the API lets it be changed.
func (f *facts) podCommand(c *fix.Change) (lines []string) {
	m := f.maker()
	owner := metav1.GetControllerOfNoCopy(f.api)
	patch, class := f.admissible(c.Patch, m.kind == "")
	if class != "" {
		lines = append(lines, class)
	}
	switch {
	case inPlace(c.Patch, m.kind == ""):
		patch = oneByOne(patch)
		return append(lines, fmt.Sprintf("kubectl patch pod %s -n %s --type=json -p '%s'", word(c.Name), word(c.Namespace), patchText(patch, "")))
	case m.kind == "job":
		form, text := f.templateText(patch, "/spec/template")
		return append(lines, f.jobCommands(&m, form, text)...)
	case m.kind == "cronjob":
		form, text := f.templateText(patch, "/spec/jobTemplate/spec/template")
		return append(lines, f.jobCommands(&m, form, text)...)
	case m.kind != "":
		form, text := f.templateText(patch, "/spec/template")
		lines = append(lines, fmt.Sprintf("kubectl patch %s %s -n %s %s-p '%s'", m.kind, word(m.name), word(c.Namespace), form, text))
		return append(lines, f.rollOut(&m)...)
	case owner != nil:
		return append(lines, terminal.Escape(fmt.Sprintf("# change it in %s %s, which makes this pod", owner.Kind, owner.Name)))
	}
	return append(lines,
		fmt.Sprintf("kubectl get pod %s -n %s -o json |", word(c.Name), word(c.Namespace)),
		fmt.Sprintf("  kubectl patch --local -f - --type=json -o json -p '%s' |", patchText(patch, "")),
		"  kubectl replace --force -f -")
}

// admissible returns the patch as the API server's admission takes it: a priority and a
// preemption policy come of a class. Where no class has both, the command makes one.
func (f *facts) admissible(patch []fix.Op, live bool) (out []fix.Op, makeClass string) {
	level, changed := "0", false
	if f.api.Spec.Priority != nil {
		level = fmt.Sprint(*f.api.Spec.Priority)
	}
	named := slices.ContainsFunc(patch, func(op fix.Op) bool { return op.Path == "/spec/priorityClassName" && op.Op == "add" })
	for _, op := range patch {
		switch {
		case op.Path == "/spec/priority":
			if live {
				out = append(out, fix.Op{Op: "remove", Path: op.Path})
			}
			level, changed = fmt.Sprint(op.Value), true
		case op.Path == "/spec/preemptionPolicy": // admission takes what the class has
			out, changed = append(out, op), true
		case op.Path == "/spec/priorityClassName" && !named:
		default:
			out = append(out, op)
		}
	}
	if !changed || named {
		return out, ""
	}
	class := f.preemptingClass(level)
	if class == "" {
		class = "priority-" + level
		makeClass = fmt.Sprintf("kubectl create priorityclass %s --value=%s", class, level)
	}
	return append(out, fix.Op{Op: "add", Path: "/spec/priorityClassName", Value: class}), makeClass
}

// preemptingClass returns the first class by name with that priority whose pods preempt; ""
// if there is none.
func (f *facts) preemptingClass(level string) (first string) {
	for _, c := range f.cluster.Set.PriorityClasses() {
		never := c.PreemptionPolicy != nil && *c.PreemptionPolicy == v1.PreemptNever
		if fmt.Sprint(c.Value) == level && !never && (first == "" || c.Name < first) {
			first = c.Name
		}
	}
	return first
}

// oneByOne adds each toleration to the list, which a pod in the API has.
func oneByOne(patch []fix.Op) (out []fix.Op) {
	for _, op := range patch {
		values, is := op.Value.([]any)
		if !is {
			out = append(out, op)
		}
		for _, v := range values {
			out = append(out, fix.Op{Op: op.Op, Path: op.Path + "/-", Value: v})
		}
	}
	return out
}

// inPlace reports whether the API lets a pod be patched so: gates may go, and tolerations
// may come, not change. Tolerations of a pod that is made anew belong in its template.
func inPlace(patch []fix.Op, tolerations bool) bool {
	for _, op := range patch {
		gate := op.Op == "remove" && strings.HasPrefix(op.Path, "/spec/schedulingGates")
		toleration := op.Op == "add" && (op.Path == "/spec/tolerations" || op.Path == "/spec/tolerations/-")
		if !gate && !(toleration && tolerations) {
			return false
		}
	}
	return true
}

// patchText is the patch on one line, of something that holds the pod's spec at a
// path.
func patchText(patch []fix.Op, at string) string {
	moved := make([]fix.Op, len(patch))
	for i, op := range patch {
		moved[i] = op
		if at != "" {
			moved[i].Path = at + op.Path
		}
	}
	data, err := json.Marshal(moved)
	if err != nil {
		return ""
	}
	return quoted(data)
}

// word is the text as one word of a shell, which expands nothing in it. Names come from
// files, too, and taints and labels from whoever may write them.
func word(text string) string {
	if text != "" && strings.Trim(text, plainLetters) == "" {
		return text
	}
	return "'" + quoted([]byte(text)) + "'"
}

// plainLetters mean nothing but themselves to a shell.
const plainLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.,/:=@%+"

// quoted is the text as it stands between single quotes in a shell.
func quoted(text []byte) string { return strings.ReplaceAll(string(text), "'", `'\''`) }
