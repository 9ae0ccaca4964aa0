// SPDX-License-Identifier: BSD-3-Clause
// classic.mjs FILE: dimensions, attributes and values of a classic netCDF file as JSON, read by
// netcdfjs, which is in the directory NCZARRFS_NPM. Values of a variable are one list: of numbers,
// or of one string for each character.
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const require = createRequire(process.env.NCZARRFS_NPM + '/package.json')
const { NetCDFReader } = await import(pathToFileURL(require.resolve('netcdfjs')))
const file = new NetCDFReader(readFileSync(process.argv[2]))

function attributes(list) {
  return Object.fromEntries(list.map(a => [a.name, a.value]))
}

const variables = Object.fromEntries(file.variables.map(v => [v.name, {
  type: v.type,
  dimensions: v.dimensions.map(i => file.dimensions[i].name),
  attributes: attributes(v.attributes),
  values: file.getDataVariable(v).flat(),
}]))
process.stdout.write(JSON.stringify({
  version: file.version,
  dimensions: Object.fromEntries(file.dimensions.map(d => [d.name, d.size])),
  records: file.recordDimension.length,
  attributes: attributes(file.globalAttributes),
  variables,
}))
