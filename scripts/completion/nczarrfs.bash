# bash completion for nczarrfs
# SPDX-License-Identifier: BSD-3-Clause
# Made by scripts/completion/generate from nczarrfs --help: do not change it by hand.

_nczarrfs_options()
{
	local list=${1%,*} last=${1##*,} at
	[[ $1 == *,* ]] && at=$list, || at=
	case $last in
	view=*) COMPREPLY=($(compgen -P "${at}view=" -W 'auto zarr nc classic' -- "${last#*=}")) ;;
	show=*) COMPREPLY=($(compgen -P "${at}show=" -W 'both converted zarr nc' -- "${last#*=}")) ;;
	filter=*) COMPREPLY=($(compgen -P "${at}filter=" -W 'portable keep none' -- "${last#*=}")) ;;
	zarr_format=*) COMPREPLY=($(compgen -P "${at}zarr_format=" -W '2 3' -- "${last#*=}")) ;;
	mode=*) COMPREPLY=($(compgen -P "${at}mode=" -W 'zarr nczarr noxarray' -- "${last#*=}")) ;;
	unsupported=*) COMPREPLY=($(compgen -P "${at}unsupported=" -W 'fail skip' -- "${last#*=}")) ;;
	classic_format=*) COMPREPLY=($(compgen -P "${at}classic_format=" -W 'auto cdf1 cdf2 cdf5' -- "${last#*=}")) ;;
	chunk_key_encoding=*) COMPREPLY=($(compgen -P "${at}chunk_key_encoding=" -W 'default v2' -- "${last#*=}")) ;;
	dimension_separator=*) COMPREPLY=($(compgen -P "${at}dimension_separator=" -W '. /' -- "${last#*=}")) ;;
	json_nan=*) COMPREPLY=($(compgen -P "${at}json_nan=" -W 'literal string' -- "${last#*=}")) ;;
	concat_compat=*) COMPREPLY=($(compgen -P "${at}concat_compat=" -W 'override equals' -- "${last#*=}")) ;;
	s3_addressing=*) COMPREPLY=($(compgen -P "${at}s3_addressing=" -W 'path virtual' -- "${last#*=}")) ;;
	new_files=*) COMPREPLY=($(compgen -P "${at}new_files=" -W 'convert keep' -- "${last#*=}")) ;;
	consolidated=*) COMPREPLY=($(compgen -P "${at}consolidated=" -W 'auto always never' -- "${last#*=}")) ;;
	page_cache=*) COMPREPLY=($(compgen -P "${at}page_cache=" -W 'auto always' -- "${last#*=}")) ;;
	*) COMPREPLY=($(compgen -P "$at" -W 'view= show= rw create filter= zarr_format= shards= concat= rechunk= mode= unsupported= classic_format= quantize= chunk_key_encoding= dimension_separator= json_nan= concat_compat= endpoint= profile= region= anonymous requester_pays s3_addressing= ca_file= bearer_file= netrc_file= insecure private_redirects timeout= max_attempts= max_connections= revalidate= chunks= unlimited= new_files= consolidated= root= state_dir= stage_size= commit_delay= memory= cache_size= remote_cache_size= prefetch_size= cache_dir= disk_cache_size= decode_threads= open_datasets= page_cache= default_chunk_size= concat_index= noxattr max_chunk= open_timeout= external_root= noplugins sandbox_codecs inline table address= debug log= metrics= config= allow_other allow_root auto_unmount default_permissions max_read= max_threads= max_idle_threads= clone_fd fsname= subtype= ro nosuid nodev noexec exec sync async dirsync noatime context= fscontext= defcontext= rootcontext=' -- "$last")) ;;
	esac
	compopt -o nospace 2>/dev/null
}

_nczarrfs_long()
{
	case $1 in
	--view) COMPREPLY=($(compgen -W 'auto zarr nc classic' -- "$2")) ;;
	--show) COMPREPLY=($(compgen -W 'both converted zarr nc' -- "$2")) ;;
	--filter) COMPREPLY=($(compgen -W 'portable keep none' -- "$2")) ;;
	--zarr-format) COMPREPLY=($(compgen -W '2 3' -- "$2")) ;;
	--mode) COMPREPLY=($(compgen -W 'zarr nczarr noxarray' -- "$2")) ;;
	--unsupported) COMPREPLY=($(compgen -W 'fail skip' -- "$2")) ;;
	--classic-format) COMPREPLY=($(compgen -W 'auto cdf1 cdf2 cdf5' -- "$2")) ;;
	--chunk-key-encoding) COMPREPLY=($(compgen -W 'default v2' -- "$2")) ;;
	--dimension-separator) COMPREPLY=($(compgen -W '. /' -- "$2")) ;;
	--json-nan) COMPREPLY=($(compgen -W 'literal string' -- "$2")) ;;
	--concat-compat) COMPREPLY=($(compgen -W 'override equals' -- "$2")) ;;
	--s3-addressing) COMPREPLY=($(compgen -W 'path virtual' -- "$2")) ;;
	--new-files) COMPREPLY=($(compgen -W 'convert keep' -- "$2")) ;;
	--consolidated) COMPREPLY=($(compgen -W 'auto always never' -- "$2")) ;;
	--page-cache) COMPREPLY=($(compgen -W 'auto always' -- "$2")) ;;
	*) COMPREPLY=($(compgen -f -- "$2")) ;;
	esac
}

_nczarrfs_names()
{
	local name rest
	while read -r name rest; do
		[[ $name != - && $name != NAME && $name == "$2"* ]] && COMPREPLY+=("$name")
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
	if [[ $line =~ [[:space:]](--[a-z0-9-]+)=([^[:space:]]*)$ ]]; then
		_nczarrfs_long "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
		return
	fi
	if [[ $line =~ [[:space:]](--view|--show|--filter|--zarr-format|--concat|--rechunk|--mode|--unsupported|--classic-format|--quantize|--chunk-key-encoding|--dimension-separator|--json-nan|--concat-compat|--endpoint|--profile|--region|--s3-addressing|--ca-file|--bearer-file|--netrc-file|--timeout|--max-attempts|--max-connections|--revalidate|--chunks|--unlimited|--new-files|--consolidated|--root|--state-dir|--stage-size|--commit-delay|--memory|--cache-size|--remote-cache-size|--prefetch-size|--cache-dir|--disk-cache-size|--decode-threads|--open-datasets|--page-cache|--default-chunk-size|--concat-index|--max-chunk|--open-timeout|--external-root|--address|--log|--metrics|--config|--max-read|--max-threads|--max-idle-threads|--fsname|--subtype|--context|--fscontext|--defcontext|--rootcontext)[[:space:]]+([^[:space:]]*)$ ]]; then
		_nczarrfs_long "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
		return
	fi
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		-*) ;;
		mount|umount|list|info|filters|recover|refs|check|convert|serve|status|log|help|version) command=$word; break ;;
		*) break ;;
		esac
	done
	if [[ $cur == -* ]]; then
		case $command in
		umount) flags='-a --all -v --verbose -h --help' ;;
		list) flags='--json -v --verbose -h --help' ;;
		info) flags='--variable --json -v --verbose -h --help --view= --show= --filter= --zarr-format= --shards= --concat= --rechunk= --mode= --unsupported= --classic-format= --quantize= --chunk-key-encoding= --dimension-separator= --json-nan= --concat-compat= --endpoint= --profile= --region= --anonymous --requester-pays --s3-addressing= --ca-file= --bearer-file= --netrc-file= --insecure --private-redirects --timeout= --max-attempts= --max-connections= --revalidate= --memory= --cache-size= --remote-cache-size= --prefetch-size= --cache-dir= --disk-cache-size= --decode-threads= --open-datasets= --page-cache= --default-chunk-size= --concat-index= --noxattr --max-chunk= --open-timeout= --external-root= --noplugins --sandbox-codecs --debug --log= --metrics= --config=' ;;
		filters) flags='--json -v --verbose -h --help --noplugins' ;;
		recover) flags='--json -v --verbose -h --help --endpoint= --profile= --region= --anonymous --requester-pays --s3-addressing= --ca-file= --bearer-file= --netrc-file= --insecure --private-redirects --timeout= --max-attempts= --max-connections= --revalidate= --state-dir= --max-chunk= --open-timeout= --external-root= --noplugins --sandbox-codecs --debug --log= --metrics= --config=' ;;
		refs) flags='--json -v --verbose -h --help --filter= --concat= --rechunk= --mode= --unsupported= --quantize= --dimension-separator= --json-nan= --concat-compat= --endpoint= --profile= --region= --anonymous --requester-pays --s3-addressing= --ca-file= --bearer-file= --netrc-file= --insecure --private-redirects --timeout= --max-attempts= --max-connections= --revalidate= --memory= --cache-size= --remote-cache-size= --prefetch-size= --cache-dir= --disk-cache-size= --decode-threads= --open-datasets= --default-chunk-size= --concat-index= --max-chunk= --open-timeout= --external-root= --noplugins --sandbox-codecs --inline --table --address= --debug --log= --metrics= --config=' ;;
		check) flags='--resume --quick --json -v --verbose -h --help --concat= --unsupported= --endpoint= --profile= --region= --anonymous --requester-pays --s3-addressing= --ca-file= --bearer-file= --netrc-file= --insecure --private-redirects --timeout= --max-attempts= --max-connections= --revalidate= --memory= --cache-size= --decode-threads= --open-datasets= --max-chunk= --open-timeout= --external-root= --noplugins --sandbox-codecs --debug --log= --metrics= --config=' ;;
		convert) flags='--force --verify --json -v --verbose -h --help --view= --filter= --zarr-format= --shards= --concat= --rechunk= --mode= --unsupported= --classic-format= --quantize= --chunk-key-encoding= --dimension-separator= --json-nan= --concat-compat= --endpoint= --profile= --region= --anonymous --requester-pays --s3-addressing= --ca-file= --bearer-file= --netrc-file= --insecure --private-redirects --timeout= --max-attempts= --max-connections= --revalidate= --unlimited= --consolidated= --memory= --cache-size= --remote-cache-size= --prefetch-size= --cache-dir= --disk-cache-size= --decode-threads= --open-datasets= --page-cache= --default-chunk-size= --concat-index= --noxattr --max-chunk= --open-timeout= --external-root= --noplugins --sandbox-codecs --debug --log= --metrics= --config=' ;;
		serve) flags='-p --port --bind --origin -v --verbose -h --help --view= --show= --filter= --zarr-format= --shards= --concat= --rechunk= --mode= --unsupported= --classic-format= --quantize= --chunk-key-encoding= --dimension-separator= --json-nan= --concat-compat= --endpoint= --profile= --region= --anonymous --requester-pays --s3-addressing= --ca-file= --bearer-file= --netrc-file= --insecure --private-redirects --timeout= --max-attempts= --max-connections= --revalidate= --memory= --cache-size= --remote-cache-size= --prefetch-size= --cache-dir= --disk-cache-size= --decode-threads= --open-datasets= --page-cache= --default-chunk-size= --concat-index= --noxattr --max-chunk= --open-timeout= --external-root= --noplugins --sandbox-codecs --debug --log= --metrics= --config=' ;;
		status) flags='--json -v --verbose -h --help' ;;
		log) flags='-v --verbose -h --help' ;;
		help) flags='-v --verbose -h --help' ;;
		version) flags='-v --verbose -h --help' ;;
		*) flags='--all --allow-other --allow-root --anonymous --async --auto-unmount --bearer-file= --ca-file= --cache-dir= --cache-size= --chunk-key-encoding= --chunks= --classic-format= --clone-fd --commit-delay= --concat-compat= --concat-index= --concat= --config= --consolidated= --context= --create --debug --decode-threads= --default-chunk-size= --default-permissions --defcontext= --dimension-separator= --dirsync --disk-cache-size= --endpoint= --exec --external-root= --filter= --fscontext= --fsname= --help --insecure --json-nan= --log= --max-attempts= --max-chunk= --max-connections= --max-idle-threads= --max-read= --max-threads= --memory= --metrics= --mode= --netrc-file= --new-files= --no-config --noatime --nodev --noexec --noplugins --nosuid --noxattr --open-datasets= --open-timeout= --page-cache= --prefetch-size= --print-config --private-redirects --profile= --quantize= --rechunk= --region= --remote-cache-size= --requester-pays --revalidate= --ro --root= --rootcontext= --rw --s3-addressing= --sandbox-codecs --shards= --show= --stage-size= --state-dir= --subtype= --sync --timeout= --unlimited= --unsupported= --verbose --version --view= --zarr-format= -V -a -d -f -h -o -v' ;;
		esac
		COMPREPLY=($(compgen -W "$flags" -- "$cur"))
		[[ ${COMPREPLY[*]} == *= ]] && compopt -o nospace 2>/dev/null
		return
	fi
	compopt -o filenames 2>/dev/null
	case $command in
	umount)
		_nczarrfs_names "$1" "$cur"
		_nczarrfs_mountpoints "$cur"
		[[ ${COMPREPLY[*]} ]] || COMPREPLY=($(compgen -d -- "$cur"))
		return ;;
	status|log)
		_nczarrfs_mountpoints "$cur"
		[[ ${COMPREPLY[*]} ]] || COMPREPLY=($(compgen -d -- "$cur"))
		return ;;
	mount) _nczarrfs_names "$1" "$cur" ;;
	help) COMPREPLY=($(compgen -W 'mount umount list info filters recover refs check convert serve status log help version options' -- "$cur")); return ;;
	esac
	COMPREPLY+=($(compgen -f -- "$cur"))
	[[ $COMP_CWORD == 1 ]] && COMPREPLY+=($(compgen -W 'mount umount list info filters recover refs check convert serve status log help version' -- "$cur"))
}

complete -F _nczarrfs nczarrfs
