// Package plugins lists the plugins that come with Berth, by the names that
// configurations use. The mains hand the list to the profile builder; nobody
// else in core knows any of them.
package plugins
