# bash completion for nczarrfs
# Made by scripts/completion/generate from nczarrfs --help: do not change it by hand.

_nczarrfs_options()
{
	local list=${1%,*} last=${1##*,} at
	[[ $1 == *,* ]] && at=$list, || at=
	case $last in
	view=*) COMPREPLY=($(compgen -P "${at}view=" -W 'auto zarr nc' -- "${last#*=}")) ;;
	show=*) COMPREPLY=($(compgen -P "${at}show=" -W 'both converted zarr nc' -- "${last#*=}")) ;;
	mode=*) COMPREPLY=($(compgen -P "${at}mode=" -W 'zarr nczarr noxarray' -- "${last#*=}")) ;;
	zarr_format=*) COMPREPLY=($(compgen -P "${at}zarr_format=" -W '2 3' -- "${last#*=}")) ;;
	chunk_key_encoding=*) COMPREPLY=($(compgen -P "${at}chunk_key_encoding=" -W 'default v2' -- "${last#*=}")) ;;
	filter=*) COMPREPLY=($(compgen -P "${at}filter=" -W 'portable keep none' -- "${last#*=}")) ;;
	unsupported=*) COMPREPLY=($(compgen -P "${at}unsupported=" -W 'fail skip' -- "${last#*=}")) ;;
	dimension_separator=*) COMPREPLY=($(compgen -P "${at}dimension_separator=" -W '. /' -- "${last#*=}")) ;;
	json_nan=*) COMPREPLY=($(compgen -P "${at}json_nan=" -W 'literal string' -- "${last#*=}")) ;;
	page_cache=*) COMPREPLY=($(compgen -P "${at}page_cache=" -W 'auto always' -- "${last#*=}")) ;;
	concat_compat=*) COMPREPLY=($(compgen -P "${at}concat_compat=" -W 'override equals' -- "${last#*=}")) ;;
	new_files=*) COMPREPLY=($(compgen -P "${at}new_files=" -W 'convert keep' -- "${last#*=}")) ;;
	consolidated=*) COMPREPLY=($(compgen -P "${at}consolidated=" -W 'auto always never' -- "${last#*=}")) ;;
	s3_addressing=*) COMPREPLY=($(compgen -P "${at}s3_addressing=" -W 'path virtual' -- "${last#*=}")) ;;
	*) COMPREPLY=($(compgen -P "$at" -W 'view= show= mode= zarr_format= shards= chunk_key_encoding= filter= quantize= unsupported= dimension_separator= json_nan= page_cache= default_chunk_size= max_chunk= memory= cache_size= open_datasets= decode_threads= open_timeout= external_root= concat= concat_compat= concat_index= noxattr metrics= log= config= noplugins sandbox_codecs debug rw create new_files= chunks= unlimited= consolidated= stage_size= commit_delay= root= state_dir= nojournal endpoint= profile= region= anonymous requester_pays s3_addressing= ca_file= bearer_file= netrc_file= insecure private_redirects timeout= max_attempts= max_connections= remote_cache_size= prefetch_size= cache_dir= disk_cache_size= revalidate= inline address= allow_other allow_root auto_unmount default_permissions max_read= max_threads= max_idle_threads= clone_fd fsname= subtype= ro nosuid nodev noexec exec sync async dirsync noatime context= fscontext= defcontext= rootcontext=' -- "$last")) ;;
	esac
	compopt -o nospace 2>/dev/null
}

_nczarrfs_names()
{
	local name rest
	while read -r name rest; do
		[[ $name != - && $name == "$2"* ]] && COMPREPLY+=("$name")
	done < <("$1" list 2>/dev/null)
}

_nczarrfs_mountpoints()
{
	local device dir type rest
	while read -r device dir type rest; do
		printf -v dir %b "$dir"
		[[ $type == fuse.nczarrfs && $dir == "$1"* ]] && COMPREPLY+=("$dir")
	done </proc/self/mounts
}

_nczarrfs()
{
	local cur=${COMP_WORDS[COMP_CWORD]} command= i word flags
	local line=${COMP_LINE:0:COMP_POINT}
	COMPREPLY=()
	# '=' and ':' are words of their own to bash; an option is not
	if [[ $line =~ (^|[[:space:]])-o[[:space:]]*([^[:space:]]*)$ ]]; then
		_nczarrfs_options "${BASH_REMATCH[2]}"
		local done=${BASH_REMATCH[2]%"$cur"}
		[[ $cur == = ]] && done=${BASH_REMATCH[2]}
		[[ ${BASH_REMATCH[2]} == *=* ]] && COMPREPLY=("${COMPREPLY[@]#"$done"}")
		return
	fi
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		-*) ;;
		mount|umount|list|info|filters|recover|refs|check|convert|serve|status|log) command=$word; break ;;
		*) break ;;
		esac
	done
	case $command in
	mount) flags='-a' ;;
	umount) flags='-a' ;;
	list) flags='--json' ;;
	info) flags='--json' ;;
	filters) flags='--json -v' ;;
	recover) flags='--json' ;;
	refs) flags='--json' ;;
	check) flags='--json --quick --resume' ;;
	convert) flags='--force --json --verify' ;;
	serve) flags='--bind --origin -p' ;;
	status) flags='--json' ;;
	log) flags='' ;;
	*) flags= ;;
	esac
	if [[ $cur == -* ]]; then
		COMPREPLY=($(compgen -W "$flags -f -d --debug -v --verbose -h --help -V --version -a --all --config --no-config --print-config --metrics -o" -- "$cur"))
		return
	fi
	compopt -o filenames 2>/dev/null
	case $command in
	mount)
		_nczarrfs_names "$1" "$cur"
		return ;;
	umount)
		_nczarrfs_names "$1" "$cur"
		_nczarrfs_mountpoints "$cur"
		[[ ${COMPREPLY[*]} ]] || COMPREPLY=($(compgen -d -- "$cur"))
		return ;;
	status|log)
		_nczarrfs_mountpoints "$cur"
		[[ ${COMPREPLY[*]} ]] || COMPREPLY=($(compgen -d -- "$cur"))
		return ;;
	esac
	COMPREPLY=($(compgen -f -- "$cur"))
	[[ $COMP_CWORD == 1 ]] && COMPREPLY+=($(compgen -W 'mount umount list info filters recover refs check convert serve status log' -- "$cur"))
}

complete -F _nczarrfs nczarrfs
