// Package classes finds the pods that no plugin of a profile can tell apart. They form a
// class: whatever is found out about one of them holds for all.
//
// Each plugin writes what it reads of a pod, and the signature of the pod's class is all of
// that in a row. Say that a profile has two plugins, one that reads requests and one that
// reads tolerations:
//
//	pod   labels   requests   tolerations   signature
//	a     app=x    100m       -             profile, 100m, -
//	b     app=y    100m       -             profile, 100m, -
//	c     app=y    200m       -             profile, 200m, -
//
// Pods a and b are of one class, as no plugin reads labels. What a plugin reads may depend
// on other objects, as the selectors of Services: its revision says for how long a
// signature lasts.
//
// What is kept for a class hangs on it (Class.Kept). Classes for which nothing is kept are
// forgotten when their signatures take too much memory.
package classes
