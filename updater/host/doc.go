// Package host does the updater's work on one boot server: it runs systemd
// units, installs packages, archives and container images, checks the health of
// components, and uploads contents to sabakan.
//
// Every call can be repeated: whatever was cut short, by a kill, a power cut or a
// cancelled context, is gone on with by the same call. It knows nothing of
// other servers' workers, of barriers or of the store, and decides no order.
// Package multicall gives it to a worker as its Server; `neco diagnose` asks it.
package host
