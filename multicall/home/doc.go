// Package home is the operator's folder: BIJOU_HOME, the environments in it,
// and where each keeps what.
//
//	BIJOU_HOME/current                  the name of the environment in use
//	BIJOU_HOME/NAME/environment.yaml    what bootstrap chose; written last, so its presence is the environment's
//	BIJOU_HOME/NAME/state/state.db      the store, unless --state says otherwise
//	BIJOU_HOME/NAME/tools/VERSION-SHA8/ the binary and a link for each applet
//	BIJOU_HOME/NAME/machines/ID/        a local machine: agent.pid, agent.log, units/
//
// It knows no state and starts no process. multicall and multicall/juju import it.
package home
