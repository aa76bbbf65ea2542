// Command berth-scheduler is the scheduler as a daemon. It takes
// kube-scheduler's flags and configuration file. Package scheduler holds all of
// it. A scheduler with plugins of your own is a main like this one.
package main
